"""The attention subjects of ONNX Runtime against attention in float64, written here once more in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.attention import Attention

pytestmark = pytest.mark.onnxruntime

SIZES = (2, 4, 2, 6, 7, 4, 3)
ROOM = {"float32": 1e-4, "float16": 0.03, "float64": 1e-11}


def named(id: str) -> Attention:
    from hardmask.adapters import onnx_attention

    return next(s for s in onnx_attention.subjects() if s.id == id)


def problem(
    dtype: str, sizes: tuple[int, ...] = SIZES, *, causal: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    batch, heads, groups, queries, keys, width, value_width = sizes
    rng = np.random.default_rng(0)
    shapes = ((batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, value_width))
    q, k, v = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    if causal:
        return q, k, v, np.tril(np.ones((queries, keys), bool))[None, None]
    mask = rng.random((batch, heads, queries, keys)) < 0.6
    mask[..., :1] = True
    mask[0, :, 1:2] = False
    return q, k, v, mask


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float) -> np.ndarray:
    share = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), share, axis=1) for x in (k, v))
    e = np.where(mask, np.exp(scale * q.astype(np.float64) @ k.swapaxes(-1, -2)), 0.0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("variant", ["boolean", "-inf", "causal"])
def test_the_operator_computes_attention_and_zero_for_an_empty_row(variant: str, dtype: str) -> None:
    subject = named(f"onnx.attention[{variant}]")
    assert subject.contract == "zero"
    assert dtype in subject.dtypes
    given = problem(dtype, causal=variant == "causal")
    before = [a.copy() for a in given]
    found = subject.forward(*given, 0.4)
    assert isinstance(found, np.ndarray)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(np.float64), attention(*given, 0.4), rtol=0, atol=ROOM[dtype])
    assert variant == "causal" or not found[0, :, 1].any()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(given, before, strict=True))


def test_strides_and_masks_that_broadcast_do_not_matter() -> None:
    q, k, v, mask = problem("float32")
    q = np.ascontiguousarray(q.swapaxes(1, 2)).swapaxes(1, 2)
    v = np.broadcast_to(v[:1], v.shape)
    mask = mask[:1, :1, :1]
    for variant in ("boolean", "-inf"):
        found = named(f"onnx.attention[{variant}]").forward(q, k, v, mask, 0.4)
        np.testing.assert_allclose(found, attention(q, k, v, mask, 0.4), rtol=0, atol=1e-4)


def test_a_finite_mask_lets_an_empty_row_through() -> None:
    subject = named("onnx.attention[-1e4]")
    assert (subject.role, subject.encoding) == ("specimen", "finite")
    q, k, v, mask = problem("float32")
    found = subject.forward(q, k, v, mask, 0.4)
    assert isinstance(found, np.ndarray)
    everything = attention(q, k, v, np.ones_like(mask), 0.4)
    np.testing.assert_allclose(found[0, :, 1], everything[0, :, 1], rtol=0, atol=1e-2)


@pytest.mark.parametrize("sizes", [(1, 2, 2, 3, 0, 4, 4), (1, 2, 2, 0, 3, 4, 4)])
def test_the_runtime_refuses_lengths_of_zero_as_the_limits_say(sizes: tuple[int, ...]) -> None:
    subject = named("onnx.attention[boolean]")
    assert {"no keys", "no queries"} <= subject.limits.keys()
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        subject.forward(*problem("float32", sizes), 0.4)


def test_the_reasons_for_missing_dtypes_are_true() -> None:
    from hardmask.adapters import onnx_attention

    onnx_attention.FORMATS["bfloat16"] = onnx_attention.TensorProto.BFLOAT16
    try:
        model = onnx_attention.operator("bfloat16", None, 0.5)
    finally:
        del onnx_attention.FORMATS["bfloat16"]
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        onnx_attention.session(model)
    # 0.4 is no float32 number: the scores are off by more than float64 would have them.
    q, k, v, mask = problem("float64")
    run = onnx_attention.session(onnx_attention.operator("float64", onnx_attention.TensorProto.BOOL, 0.4))
    (found,) = run.run(None, {"q": q, "k": k, "v": v, "mask": mask})
    assert 1e-10 < np.abs(found - attention(q, k, v, mask, 0.4)).max() < 1e-6


@pytest.mark.parametrize("variant", ["boolean", "-inf", "causal"])
def test_the_operator_runs_as_one_kernel(variant: str) -> None:
    subject = named(f"onnx.attention[{variant}]")
    assert subject.ran is not None
    assert subject.ran() == "Attention (CPUExecutionProvider)"


@pytest.mark.torch
def test_an_export_for_opset_23_is_the_operator() -> None:
    subject = named("onnx.sdpa[opset23]")
    assert subject.opt_in
    assert subject.ran is not None
    assert subject.ran() == "Attention (CPUExecutionProvider)"
    given = problem("float32", (2, 4, 4, 6, 7, 4, 3))
    found = subject.forward(*given, 0.5)
    np.testing.assert_allclose(found, attention(*given, 0.5), rtol=0, atol=1e-4)


@pytest.mark.torch
def test_an_export_for_opset_18_gives_an_empty_row_the_mean_of_the_values() -> None:
    """Where PyTorch gives 0: it declares the contract of what is exported, and does not keep it."""
    subject = named("onnx.sdpa[opset18]")
    assert subject.contract == "zero"
    q, k, v, mask = problem("float32", (2, 4, 4, 6, 7, 4, 3))
    found, true = subject.forward(q, k, v, mask, 0.5), attention(q, k, v, mask, 0.5)
    assert isinstance(found, np.ndarray)
    true[0, :, 1] = v[0].mean(axis=1)
    np.testing.assert_allclose(found, true, rtol=0, atol=1e-4)


@pytest.mark.torch
@pytest.mark.parametrize("opset", [18, 23])
def test_a_causal_export_is_aligned_with_the_first_key(opset: int) -> None:
    subject = named(f"onnx.sdpa[opset{opset},causal]")
    given = problem("float32", (1, 2, 2, 3, 5, 4, 4), causal=True)
    np.testing.assert_allclose(subject.forward(*given, 0.5), attention(*given, 0.5), rtol=0, atol=1e-4)


@pytest.mark.torch
def test_the_exporter_refuses_grouped_heads_as_the_limits_say() -> None:
    import torch

    subject = named("onnx.sdpa[opset23]")
    assert "ConversionError" in subject.limits["grouped heads"]

    class Grouped(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)

    open_ = dict.fromkeys(range(4), torch.export.Dim.DYNAMIC)
    inputs = (torch.zeros(3, 4, 5, 8), torch.zeros(3, 2, 7, 8))
    with pytest.raises(Exception, match="enable_gqa"):
        torch.onnx.export(Grouped(), inputs, dynamo=True, dynamic_shapes=(open_,) * 2, verbose=False)
