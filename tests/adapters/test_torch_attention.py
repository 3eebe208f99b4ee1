"""The attention subjects of PyTorch against attention in float64, written here once more in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.attention import LIMITS, Attention, AttentionAnswer
from hardmask.spec.formats import DTYPES, FORMATS

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings(
        "ignore:Flash attention", "ignore:Memory [Ee]fficient", "ignore:CuDNN", "ignore:Expected query"
    ),
]

Arrays = dict[str, np.ndarray]
KERNEL = {
    "torch.sdpa[math": "aten._safe_softmax",
    "torch.sdpa[flash": "aten._scaled_dot_product_flash_attention_for_cpu",
    "torch.sdpa": "aten._scaled_dot_product_flash_attention_for_cpu",
    "torch.multihead_attention[train,weights": "aten._softmax",
    "torch.multihead_attention[train": "aten._scaled_dot_product_flash_attention_for_cpu",
    "torch.multihead_attention[eval,even": "aten._native_multi_head_attention",
    "torch.multihead_attention[eval,odd": "aten._scaled_dot_product_flash_attention_for_cpu",
}
ROOM = {"float64": 1e-11, "float32": 1e-4, "float16": 0.03, "bfloat16": 0.2}
"""Far above the rounding errors of these sizes, far below the effect of a key that is let in or left out."""


def subjects(*, eager: bool = True) -> list[Attention]:
    try:
        from hardmask.adapters import torch_attention
    except ModuleNotFoundError:  # without PyTorch there is nothing to collect, and the mark decides what that means
        return []
    every = [s for s in torch_attention.subjects() if s.role != "specimen" and bool(s.opt_in) != eager]
    return [s for s in every if s.dtypes == DTYPES]  # the others have a test of their own


def named(id: str) -> Attention:
    from hardmask.adapters import torch_attention

    return next(s for s in torch_attention.subjects() if s.id == id)


def problem(
    dtype: str, sizes: tuple[int, ...] = (2, 4, 4, 6, 7, 4, 4), *, seed: int = 0, empty: bool = False
) -> Arrays:
    """``q``, ``k``, ``v``, ``mask``, ``cotangent`` and tangents for ``(B, H, G, Lq, Lk, d, dv)``."""
    batch, heads, groups, queries, keys, width, value_width = sizes
    rng = np.random.default_rng(seed)
    shapes = {
        "q": (batch, heads, queries, width),
        "k": (batch, groups, keys, width),
        "v": (batch, groups, keys, value_width),
        "cotangent": (batch, heads, queries, value_width),
    }
    shapes |= {f"t{x}": shapes[x] for x in "qkv"}
    made = {name: rng.standard_normal(shape).astype(FORMATS[dtype].dtype) for name, shape in shapes.items()}
    mask = rng.random((batch, heads, queries, keys)) < 0.6
    mask[..., :1] = True
    if empty:
        mask[0, :, 1] = False
    return {**made, "mask": mask}


def masked_for(subject: Attention, p: Arrays, *, empty: bool = False) -> Arrays:
    """The problem with a mask that the subject can be told."""
    queries, keys = p["mask"].shape[2:]
    if subject.encoding == "causal":
        return {**p, "mask": np.tril(np.ones((queries, keys), bool))[None, None]}
    if "mask per query" in subject.limits:
        by_key = np.arange(keys) < np.array([3, keys])[:, None]
        by_key[0, :3] = not empty
        return {**p, "mask": by_key[:, None, None]}
    return p


def scale_for(subject: Attention, p: Arrays) -> float:
    return p["q"].shape[3] ** -0.5 if "scale" in subject.limits else 0.4


def attention(p: Arrays, scale: float) -> Arrays:
    """Everything in float64. An empty row is 0."""
    q, k, v, g = (p[x].astype(np.float64) for x in ("q", "k", "v", "cotangent"))
    share = q.shape[1] // k.shape[1]
    tq, tk, tv = (p[f"t{x}"].astype(np.float64) for x in "qkv")
    k_, v_, tk, tv = (np.repeat(x, share, axis=1) for x in (k, v, tk, tv))
    mask = np.broadcast_to(p["mask"], (*q.shape[:3], k.shape[2]))
    e = np.where(mask, np.exp(scale * q @ k_.swapaxes(-1, -2)), 0.0)
    total = e.sum(-1, keepdims=True)
    w = np.divide(e, total, out=np.zeros_like(e), where=total > 0)

    def centred(x: np.ndarray) -> np.ndarray:
        return scale * w * (x - (w * x).sum(-1, keepdims=True))

    d_scores = centred(g @ v_.swapaxes(-1, -2))
    moved = centred(tq @ k_.swapaxes(-1, -2) + q @ tk.swapaxes(-1, -2))

    def grouped(x: np.ndarray) -> np.ndarray:
        return x.reshape(*k.shape[:2], share, *x.shape[2:]).sum(2)

    return {
        "output": w @ v_,
        "weights": w,
        "dq": d_scores @ k_,
        "dk": grouped(d_scores.swapaxes(-1, -2) @ q),
        "dv": grouped(w.swapaxes(-1, -2) @ g),
        "tangent": moved @ v_ + w @ tv,
    }


def answers(subject: Attention, p: Arrays, scale: float) -> Arrays:
    """What every method of the subject says, by the names of :func:`attention`."""
    arguments = (p["q"], p["k"], p["v"], p["mask"], scale)
    forward = subject.forward(*arguments)
    found = {"output": forward.output if isinstance(forward, AttentionAnswer) else forward}
    if isinstance(forward, AttentionAnswer):
        found["weights"] = forward.weights
    if subject.vjp is not None:
        found |= dict(zip(("dq", "dk", "dv"), subject.vjp(*arguments, p["cotangent"]), strict=True))
    if subject.jvp is not None:
        found["tangent"] = subject.jvp(*arguments, (p["tq"], p["tk"], p["tv"]))
    return found


def close(found: Arrays, true: Arrays, dtype: str, rows: np.ndarray | None = None) -> None:
    for name, array in found.items():
        assert array.dtype == FORMATS[dtype].dtype, name
        assert array.shape == true[name].shape, name
        of_queries = rows is not None and name in ("output", "weights", "tangent")
        wide, exact = array.astype(np.float64), true[name]
        wide, exact = (wide[rows], exact[rows]) if of_queries else (wide, exact)
        np.testing.assert_allclose(wide, exact, rtol=0, atol=ROOM[dtype] * np.abs(exact).max(initial=1), err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_every_method_computes_attention_and_leaves_its_arguments_alone(subject: Attention, dtype: str) -> None:
    assert subject.methods[0] == "forward"
    assert {"forward", "vjp", "jvp"} == {*subject.methods, *(set(subject.unsupported) & {"vjp", "jvp"})}
    p = masked_for(subject, problem(dtype))
    before = {name: array.copy() for name, array in p.items()}
    scale = scale_for(subject, p)
    close(answers(subject, p, scale), attention(p, scale), dtype)
    assert all(p[name].tobytes() == array.tobytes() for name, array in before.items())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_an_empty_row_gives_what_the_subject_declares(subject: Attention, dtype: str) -> None:
    if subject.encoding == "causal":
        pytest.skip("a causal flag cannot say that a row is empty")
    # An even number of keys: with an odd one, NaN in a row reaches its neighbour in bfloat16 products on some machines.
    p = masked_for(subject, problem(dtype, (2, 4, 4, 6, 8, 4, 4), empty=True), empty=True)
    scale = scale_for(subject, p)
    found, true = answers(subject, p, scale), attention(p, scale)
    empty = ~np.broadcast_to(p["mask"].any(-1), p["q"].shape[:3])
    assert empty.any()
    assert not empty.all()
    if subject.contract == "zero":
        close(found, true, dtype)
        assert not found["output"][empty].any()
    else:
        assert subject.contract == "nan"
        per_query = {n: a for n, a in found.items() if n in ("output", "weights")}
        close(per_query, true, dtype, ~empty)
        assert all(np.isnan(a[empty].astype(np.float64)).all() for a in per_query.values())
        # The zero cotangent of an empty row is multiplied by NaN: the gradients of shared keys show the policy.
        assert "dk" not in found or np.isnan(found["dk"][0].astype(np.float64)).any()


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_the_kernel_that_runs_is_the_one_that_the_id_names(subject: Attention) -> None:
    if subject.ran is None:
        assert "cannot" in subject.kernel
        return
    expected = next(kernel for prefix, kernel in KERNEL.items() if subject.id.startswith(prefix))
    assert subject.ran() == expected
    assert subject.kernel


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_problems_within_the_limits_are_computed(subject: Attention) -> None:
    beyond = {
        "grouped heads": (2, 4, 2, 6, 7, 4, 4),
        "values of another width": (2, 4, 4, 6, 7, 4, 3),
        "no keys": (2, 4, 4, 6, 0, 4, 4),
        "no queries": (2, 4, 4, 0, 7, 4, 4),
        "queries other than keys": (2, 3, 3, 9, 2, 4, 4),
    }
    for limit in beyond.keys() - subject.limits.keys():
        p = masked_for(subject, problem("float32", beyond[limit]))
        scale = scale_for(subject, p)
        true = attention(p, scale)
        if limit == "no keys" and subject.contract == "nan":
            true = {n: np.zeros_like(a) for n, a in true.items()}  # an empty sum, whatever the contract
        close(answers(subject, p, scale), true, "float32")


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_the_limits_are_true(subject: Attention) -> None:
    """Beyond a limit the entry point raises, or computes something else, or another kernel answers."""
    beyond = {
        "grouped heads": (2, 4, 2, 6, 7, 4, 4),
        "values of another width": (2, 4, 4, 6, 7, 4, 3),
        "no keys": (2, 4, 4, 6, 0, 4, 4),
        "no queries": (2, 4, 4, 0, 7, 4, 4),
        "scale": (2, 4, 4, 6, 7, 4, 4),
        "mask per head": (2, 4, 4, 6, 7, 4, 4),
        "mask per query": (2, 4, 4, 6, 7, 4, 4),
    }
    for limit in subject.limits:
        assert limit in LIMITS
        p = problem("float32", beyond[limit])
        if limit not in ("mask per head", "mask per query"):
            p = masked_for(subject, p)
        scale = 0.4 if limit == "scale" else scale_for(subject, p)
        with pytest.raises((RuntimeError, AssertionError, ValueError)):
            close({"output": answers(subject, p, scale)["output"]}, attention(p, scale), "float32")


def test_without_keys_or_queries_no_kernel_runs() -> None:
    from hardmask.adapters.torch_calls import kernel_of
    from hardmask.adapters.torch_sdpa import SDPBackend, boolean, forced

    flash = forced(SDPBackend.FLASH_ATTENTION, boolean)
    assert kernel_of(flash, keys=1)() == "aten._scaled_dot_product_flash_attention_for_cpu"
    assert kernel_of(flash, keys=0)() == kernel_of(flash, queries=0)() == "none of them"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.id)
def test_strides_do_not_matter(subject: Attention, dtype: str) -> None:
    p = masked_for(subject, problem(dtype))
    transposed = {
        name: np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) if name in "qkv" else a for name, a in p.items()
    }
    shared = {**p, "k": p["k"][:1].repeat(2, 0), "v": p["v"][:1].repeat(2, 0)}
    expanded = {
        **shared,
        **{x: np.lib.stride_tricks.as_strided(p[x][:1].copy(), p[x].shape, (0, *p[x].strides[1:])) for x in "kv"},
    }
    read_only = {name: a.copy() for name, a in p.items()}
    for array in read_only.values():
        array.flags.writeable = False
    scale = scale_for(subject, p)
    for given, plain in ((transposed, p), (expanded, shared), (read_only, p)):
        close(answers(subject, given, scale), attention(plain, scale), dtype)


@pytest.mark.parametrize("constant", ["-1e4", "-1e9", "finfo.min", "0/1"])
def test_a_finite_mask_is_a_bias_on_the_scores(constant: str) -> None:
    subject = named(f"torch.sdpa[math,{constant}]")
    assert (subject.role, subject.encoding, subject.convention) == ("specimen", "finite", "additive")
    value = {"-1e4": -1e4, "-1e9": -1e9, "finfo.min": float(np.finfo(np.float64).min), "0/1": -1.0}[constant]
    p = problem("float64", empty=True)
    q, k, v = p["q"], p["k"], p["v"]
    biased = 0.4 * q @ k.swapaxes(-1, -2) + np.where(p["mask"], 0.0, value)
    e = np.exp(biased - biased.max(-1, keepdims=True))
    expected = e / e.sum(-1, keepdims=True) @ v
    found = subject.forward(q, k, v, p["mask"], 0.4)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 if constant != "-1e9" else 1e-6)
    assert np.abs(found[0, 0, 1]).max() > 0.01  # so that the empty row is not 0


def test_causal_is_aligned_with_the_first_key() -> None:
    q, k = np.zeros((1, 1, 1, 4), np.float32), np.zeros((1, 1, 4, 4), np.float32)
    v = np.broadcast_to(np.arange(4, dtype=np.float32)[:, None], (1, 1, 4, 4)).copy()
    mask = np.array([[[[True, False, False, False]]]])
    for kernel in ("math", "flash"):
        subject = named(f"torch.sdpa[{kernel},causal]")
        assert subject.causal == "top-left"
        found = subject.forward(q, k, v, mask, 1.0)
        assert isinstance(found, np.ndarray)
        assert not found.any()


def test_a_reason_for_no_forward_mode_is_what_pytorch_says() -> None:
    import torch

    from hardmask.adapters.torch_sdpa import SDPBackend, boolean, forced

    q = torch.ones(1, 1, 2, 4)
    mask = torch.ones(1, 1, 2, 2, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="_scaled_dot_product_flash_attention_for_cpu"):
        torch.func.jvp(lambda q: forced(SDPBackend.FLASH_ATTENTION, boolean)(q, q, q, mask, 1.0), (q,), (q,))


@pytest.mark.parametrize("id", ["torch.flex_attention", "torch.sdpa[export]", "torch.sdpa[compile]"])
def test_opt_in_paths_compute_attention(id: str) -> None:
    subject = named(id)
    assert subject.opt_in
    assert "cannot" in subject.kernel
    p = problem("float32", empty=True)
    scale = scale_for(subject, p)
    if "compile" in id:  # its backward pass takes the compiler as long again
        found = {"output": subject.forward(p["q"], p["k"], p["v"], p["mask"], scale)}
    else:
        found = answers(subject, p, scale)
    close(found, attention(p, scale), "float32")
    assert not found["output"][0, :, 1].any()


@pytest.mark.parametrize("id", ["torch.flex_attention", "torch.sdpa[export]"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_opt_in_paths_take_grouped_heads_and_other_values(id: str, dtype: str) -> None:
    subject = named(id)
    p = problem(dtype, (2, 4, 2, 6, 7, 8, 8))
    close({"output": subject.forward(p["q"], p["k"], p["v"], p["mask"], 0.4)}, attention(p, 0.4), dtype)


def test_flex_attention_raises_beyond_its_limits() -> None:
    import torch

    from hardmask.adapters.torch_flex import flex

    for sizes in ((1, 1, 1, 3, 0, 4, 4), (1, 1, 1, 0, 3, 4, 4)):
        p = problem("float32", sizes)
        with pytest.raises((IndexError, RuntimeError)):
            named("torch.flex_attention").forward(p["q"], p["k"], p["v"], p["mask"], 0.5)
    x = torch.ones(1, 1, 3, 4, requires_grad=True)
    with pytest.raises(NotImplementedError, match="backward"):
        flex(x, x, x, torch.ones(1, 1, 3, 3, dtype=torch.bool), 0.5)


def test_an_encoder_layer_attends_and_takes_the_path_that_its_id_names() -> None:
    from hardmask.adapters import torch_encoder

    found = {s.id: s for s in torch_encoder.subjects()}
    ran = {id: s.ran() for id, s in found.items() if s.ran is not None}
    assert ran == {
        "torch.transformer_encoder_layer[train]": "the ordinary path, padded",
        "torch.transformer_encoder_layer[eval]": "the fast path, padded",
        "torch.transformer_encoder_layer[eval,nested]": "the fast path, nested",
    }
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 2, length, 4)).astype(np.float32) for length in (3, 5, 5))
    mask = np.array([[True, True, False, True, False], [True] * 5])[:, None, None]
    scores = np.where(mask, 0.5 * (q @ k.swapaxes(-1, -2)).astype(np.float64), -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    for subject in found.values():
        assert np.abs(subject.forward(q, k, v, mask, 0.5) - e / e.sum(axis=-1, keepdims=True) @ v).max() < 1e-5
