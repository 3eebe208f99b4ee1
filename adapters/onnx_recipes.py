"""The recipes of ONNX Runtime's attention, which takes NumPy's arrays."""

from __future__ import annotations

from .recipe import Recipe

OPERATOR = """
import onnxruntime
from onnx import TensorProto, helper


def forward(q, k, v, mask, scale):
    kind = helper.np_dtype_to_tensor_dtype(q.dtype)
    mask = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
    given = {{"q": q, "k": k, "v": v{told}}}
    typed = [(n, helper.np_dtype_to_tensor_dtype(x.dtype)) for n, x in given.items()]
    inputs = [helper.make_tensor_value_info(n, t, [f"{{n}}{{axis}}" for axis in range(4)]) for n, t in typed]
    node = helper.make_node("Attention", list(given), ["output"], is_causal={causal}, scale=scale)
    output = helper.make_tensor_value_info("output", kind, None)
    graph = helper.make_graph([node], "attention", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {{n: np.ascontiguousarray(x) for n, x in given.items()}})[0]
"""

EXPORTED = """
import onnxruntime
import torch


class Attend(torch.nn.Module):
    def forward(self, q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, {told})


def forward(q, k, v, mask, scale):
    kind = getattr(torch, q.dtype.name)
    shapes = ((3, 4, 5, 8), (3, 4, 7, 8), (3, 4, 7, 6))
    given = (*(torch.zeros(s, dtype=kind) for s in shapes), torch.ones(3, 4, 5, 7, dtype=torch.bool))
    sizes = (dict.fromkeys(range(4), torch.export.Dim.DYNAMIC),) * 4
    told = {{"dynamo": True, "dynamic_shapes": sizes, "opset_version": {opset}, "verbose": False}}
    model = torch.onnx.export(Attend(), given, **told).model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    arrays = {{"q": q, "k": k, "v": v, "mask": np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))}}
    named = {{i.name: np.ascontiguousarray(arrays[i.name]) for i in session.get_inputs()}}
    return session.run(None, named)[0]
"""


def _added(value: str) -> str:
    return f', "mask": np.where(mask, 0.0, {value}).astype(q.dtype)'


RECIPES: dict[str, Recipe] = {
    **{
        f"onnx.attention[{form}]": Recipe("numpy", OPERATOR.format(told=told, causal=int(form == "causal")))
        for form, told in (
            ("boolean", ', "mask": mask'),
            ("-inf", _added("-np.inf")),
            ("causal", ""),
            ("-1e4", _added("-1e4")),
            ("finfo.min", _added("np.finfo(q.dtype).min")),
        )
    },
    **{
        f"onnx.sdpa[opset{opset}{form}]": Recipe("numpy", EXPORTED.format(told=told, opset=opset))
        for opset in (18, 23)
        for form, told in (("", "mask"), (",causal", "is_causal=True"))
    },
}
"""By the id of the subject."""
