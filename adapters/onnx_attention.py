"""The operator Attention of ONNX, and exported scaled_dot_product_attention, in ONNX Runtime on the CPU.

Two roads lead to ONNX Runtime. A graph of the one operator ``Attention``, which ONNX has since opset 23, is written
down here. And PyTorch exports a module that calls scaled_dot_product_attention: to that operator for opset 23, to
matrix products and a softmax for opset 18. Graphs are made once for each dtype, with open sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from .attention import Attention
from .errors import TargetError
from .subject import Array, Bools

Session = Any
Mask = Callable[[Bools, Array], Array | None]

FORMATS = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}

FORWARD_ONLY = "ONNX Runtime runs graphs of the forward pass; this one has no {}."

UNSUPPORTED = {
    "vjp": FORWARD_ONLY.format("backward pass"),
    "jvp": FORWARD_ONLY.format("forward-mode derivative"),
    "bfloat16": "ONNX Runtime has no kernels in bfloat16 for the CPU: it refuses the graph.",
}
UNSUPPORTED_OPERATOR = {
    **UNSUPPORTED,
    "float64": "The operator's attribute scale is a float32 number, so that scores in float64 are off by up to 2^-24.",
}

EMPTY = {
    "no keys": "ONNX Runtime refuses keys of length 0.",
    "no queries": "ONNX Runtime refuses queries of length 0.",
}

TIER = {"float32": "strict", "half": "half-ops"}


def boolean(mask: Bools, q: Array) -> Array:
    """The Boolean mask, True = allowed."""
    return mask


def added(constant: float, mask: Bools, q: Array) -> Array:
    """0 where the mask allows and ``constant`` where it blocks, in the dtype of ``q``; NaN stands for its lowest."""
    value = np.finfo(q.dtype).min if constant != constant else constant
    return np.where(mask, 0.0, value).astype(q.dtype)


def no_mask(mask: Bools, q: Array) -> None:
    """Nothing: the operator is told that it is causal."""


def operator(dtype: str, kind: int | None, scale: float) -> onnx.ModelProto:
    """A graph of one ``Attention``; ``kind`` is the type of its mask, None for a causal one without.

    >>> [n.op_type for n in operator("float32", TensorProto.BOOL, 0.5).graph.node]
    ['Attention']
    """
    typed = [(name, FORMATS[dtype]) for name in ("q", "k", "v")] + ([("mask", kind)] if kind is not None else [])
    inputs = [helper.make_tensor_value_info(n, t, [f"{n}{axis}" for axis in range(4)]) for n, t in typed]
    output = helper.make_tensor_value_info("output", FORMATS[dtype], None)
    node = helper.make_node("Attention", [n for n, _ in typed], ["output"], is_causal=int(kind is None), scale=scale)
    graph = helper.make_graph([node], "attention", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def exported(dtype: str, opset: int, causal: bool) -> onnx.ModelProto:
    """What ``torch.onnx.export`` makes of scaled_dot_product_attention with its default scale. Raises TargetError
    where PyTorch or onnxscript is not installed."""
    for need in ("torch", "onnxscript"):
        if find_spec(need) is None:
            raise TargetError(
                f"Exporting scaled_dot_product_attention needs {need}, which is not installed. Run: pip install {need}"
            )
    from .torch_onnx import export

    return export(dtype, opset, causal)


def session(model: onnx.ModelProto, profile: str = "") -> Session:
    """ONNX Runtime on the CPU with one thread; ``profile`` is where to write what it runs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def kernels(model: onnx.ModelProto, inputs: dict[str, Array]) -> str:
    """The operators that ONNX Runtime ran for a model and where, from its own profile.

    >>> x = np.ones((1, 1, 2, 4), np.float32)
    >>> kernels(operator("float32", None, 0.5), {"q": x, "k": x, "v": x})
    'Attention (CPUExecutionProvider)'
    """
    with TemporaryDirectory() as folder:
        run = session(model, str(Path(folder) / "profile"))
        run.run(None, {i.name: inputs[i.name] for i in run.get_inputs()})
        events = json.loads(Path(run.end_profiling()).read_text())
    told = [e["args"] for e in events if e.get("cat") == "Node" and "op_name" in e.get("args", {})]
    names = dict.fromkeys(f"{a['op_name']} ({a['provider']})" for a in told)
    telling = [n for n in names if n.split(" ")[0] in ("Attention", "Softmax", "FusedAttention", "MultiHeadAttention")]
    return ", ".join(telling or names)


_operator = cache(lambda *key: session(operator(*key)))
_exported = cache(lambda *key: session(exported(*key)))


def _run(run: Session, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
    given = {"q": q, "k": k, "v": v, "mask": mask}
    wanted = {i.name for i in run.get_inputs()}
    found: Array = run.run(None, {n: np.ascontiguousarray(a) for n, a in given.items() if n in wanted})[0]
    return found


def _full(mask: Bools, q: Array, k: Array) -> Bools:
    return np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))


def _problem() -> tuple[Array, Array, Array, Bools, float]:
    x = np.ones((1, 2, 3, 4), np.float32)
    return x, x, x, np.ones((1, 2, 3, 3), bool), 0.5


def operator_subject(variant: str, form: Mask, **declared: Any) -> Attention:
    """A subject of the operator, told the mask in one form."""

    def kind(dtype: str) -> int | None:
        if form is no_mask:
            return None
        return TensorProto.BOOL if form is boolean else FORMATS[dtype]

    def forward(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array:
        run = _operator(q.dtype.name, kind(q.dtype.name), float(scale))
        return _run(run, q, k, v, form(_full(mask, q, k), q))

    def ran() -> str:
        q, k, v, mask, scale = _problem()
        told = {"q": q, "k": k, "v": v, "mask": form(mask, q)}
        return kernels(operator("float32", kind("float32"), scale), {n: a for n, a in told.items() if a is not None})

    return Attention(
        f"onnx.attention[{variant}]",
        forward,
        **{
            "adapter": "onnx",
            "path": "opset 23",
            "dtypes": ("float32", "float16"),
            "tier": TIER,
            "unsupported": UNSUPPORTED_OPERATOR,
            "limits": EMPTY,
            "group": "onnx.attention",
            "kernel": "A graph of the one operator Attention, opset 23, on the CPU provider of ONNX Runtime.",
            "ran": ran,
            **declared,
        },
    )


def exported_subject(opset: int, *, causal: bool = False) -> Attention:
    """A subject of what PyTorch exports for an opset."""

    def forward(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array:
        run = _exported(q.dtype.name, opset, causal)
        return _run(run, q, k, v, _full(mask, q, k))

    def ran() -> str:
        q, k, v, mask, _ = _problem()
        return kernels(exported("float32", opset, causal), {"q": q, "k": k, "v": v, "mask": mask})

    more: dict[str, Any] = {"encoding": "causal", "causal": "top-left"} if causal else {}
    return Attention(
        f"onnx.sdpa[opset{opset}{',causal' if causal else ''}]",
        forward,
        adapter="onnx",
        path=f"torch.onnx.export, opset {opset}",
        dtypes=("float32", "float16", "float64") if opset < 23 else ("float32", "float16"),
        tier=TIER if opset > 18 else {},
        unsupported=UNSUPPORTED if opset < 23 else UNSUPPORTED_OPERATOR,
        limits={
            **EMPTY,
            "scale": "The graph is exported once, with the default scale 1 / sqrt d.",
            "grouped heads": "torch.onnx.export raises ConversionError on enable_gqa with an open number of heads.",
        },
        group="onnx.attention",
        kernel="torch.onnx.export(dynamo=True) with open sizes, on the CPU provider of ONNX Runtime.",
        ran=ran,
        opt_in="exporting takes seconds, and needs PyTorch",
        **more,
    )


def subjects() -> list[Attention]:
    """Every attention of ONNX Runtime, specimens included; the exported ones export when they are called."""
    additive: dict[str, Any] = {"convention": "additive", "encoding": "additive"}
    specimen: dict[str, Any] = {"convention": "additive", "encoding": "finite", "role": "specimen"}
    return [
        operator_subject("boolean", boolean),
        operator_subject("-inf", partial(added, -np.inf), **additive),
        operator_subject("causal", no_mask, encoding="causal", causal="top-left"),
        operator_subject("-1e4", partial(added, -1e4), **specimen),
        operator_subject("finfo.min", partial(added, float("nan")), **specimen),
        *(exported_subject(opset, causal=causal) for opset in (18, 23) for causal in (False, True)),
    ]
