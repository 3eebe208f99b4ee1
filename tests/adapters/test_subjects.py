"""Every subject that is shipped, called for real: shapes, dtypes, and the empty-row contract that it declares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hardmask.adapters import Answer, Subject, resolve
from hardmask.adapters.specimens import LEAKS
from hardmask.adapters.subject import Array, Bools
from hardmask.spec.formats import DTYPES, FORMATS

ADAPTERS = ["numpy", pytest.param("torch", marks=pytest.mark.torch), pytest.param("jax", marks=pytest.mark.jax)]

CLEAN = [
    "numpy.softmax-where",
    pytest.param("torch.softmax-where", marks=pytest.mark.torch),
    pytest.param("torch.masked-fill-where", marks=pytest.mark.torch),
    pytest.param("jax.double-where[jit]", marks=pytest.mark.jax),
    pytest.param("jax.softmax-where[jit]", marks=pytest.mark.jax),
    pytest.param("jax.softmax-where[eager]", marks=pytest.mark.jax),
]

MASK = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], bool)
EMPTY = 1
NO_EMPTY = MASK | (np.arange(4)[:, None] == EMPTY) & np.array([0, 1, 1, 0, 0], bool)
"""The same shape, for which JAX has then compiled already."""


def batch(dtype: str, seed: int = 0) -> tuple[Array, Array]:
    """Scores and a vector of the shape of MASK."""
    rng = np.random.default_rng(seed)
    scores, vector = rng.normal(size=(2, *MASK.shape)).astype(FORMATS[dtype].dtype)
    return scores, vector


def weights(answer: Array | Answer) -> Array:
    return answer.weights if isinstance(answer, Answer) else answer


def results(subject: Subject, scores: Array, mask: Bools, vector: Array) -> Iterator[tuple[str, Array]]:
    yield "forward", weights(subject.forward(scores, mask))
    for method in ("vjp", "jvp"):
        if (call := getattr(subject, method)) is not None:
            yield method, call(scores, mask, vector)


def leaks(subject: Subject) -> bool:
    return any(leak.name in subject.id for leak in LEAKS)


def zero(values: Array) -> bool:
    return bool((values.astype(np.float64) == 0).all())


def nan(values: Array) -> bool:
    return bool(np.isnan(values.astype(np.float64)).all())


def the(subject_id: str) -> Subject:
    (subject,) = resolve([subject_id])
    return subject


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_full_and_partial_rows(adapter: str) -> None:
    """Shape, dtype, finite values, exact zeros at blocked keys, and one weight 1 in a row of one allowed key."""
    seen = set()
    for subject in resolve([adapter], specimens=True):
        # JAX compiles each formula anew for each dtype; of a leak one is enough here.
        for dtype in subject.dtypes[:1] if adapter == "jax" and leaks(subject) else subject.dtypes:
            scores, vector = batch(dtype)
            for method, values in results(subject, scores, NO_EMPTY, vector):
                case = f"{subject.id} {dtype} {method}"
                assert isinstance(values, np.ndarray), case
                assert (values.shape, values.dtype) == (scores.shape, scores.dtype), case
                assert np.isfinite(values.astype(np.float64)).all(), case
                assert zero(values[~NO_EMPTY]), case
                if method == "forward":
                    assert (values[3] == [0, 0, 1, 0, 0]).all(), case
                    assert (values.astype(np.float64)[NO_EMPTY] > 0).all(), case
                else:
                    assert zero(values[3]), case
                    assert not zero(values[0]), case
                seen.add((method, dtype))
    assert seen == {(method, dtype) for method in ("forward", "vjp", "jvp") for dtype in DTYPES}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_empty_rows_follow_the_declared_contract(adapter: str) -> None:
    """Of every subject that is not a leak."""
    kinds = set()
    for subject in resolve([adapter], specimens=True):
        if leaks(subject) or subject.finite_scores:  # what a kernel does inside an attention is its own affair
            continue
        kinds.add(subject.contract)
        for dtype in subject.dtypes:
            scores, vector = batch(dtype)
            case = f"{subject.id} {dtype}"
            if subject.contract == "reject":
                for method in subject.methods:
                    args = (scores, MASK) if method == "forward" else (scores, MASK, vector)
                    with pytest.raises(ValueError, match="Row 1 allows no key, and this function refuses such rows"):
                        getattr(subject, method)(*args)
                continue
            answer = subject.forward(scores, MASK)
            if (subject.contract == "zero+valid" and "without" not in subject.id) or subject.contract == "fallback(0)":
                assert isinstance(answer, Answer), case
                assert answer.valid is not None, case
                assert answer.valid.tolist() == [True, False, True, True], case
            else:
                assert not isinstance(answer, Answer), case
            for method, values in results(subject, scores, MASK, vector):
                row, others = values[EMPTY], np.delete(values, EMPTY, 0).astype(np.float64)
                assert np.isfinite(others).all(), f"{case} {method}"
                if subject.contract == "nan":
                    assert nan(row) or (method != "forward" and zero(row)), f"{case} {method}"
                elif subject.contract == "fallback(0)" and method == "forward":
                    assert (row == [1, 0, 0, 0, 0]).all(), case
                else:
                    assert zero(row), f"{case} {method}"
    assert kinds == {"zero+valid", "nan", "reject", "fallback(0)", *(["zero"] if adapter != "numpy" else [])}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_rows_without_keys_and_batches_without_rows(adapter: str) -> None:
    for subject in resolve([adapter], specimens=True):
        if "[jit]" in subject.id and subject.role == "specimen":
            continue  # These share their functions with the others, and each shape costs a compilation.
        for shape in ((3, 0), (0, 3), (2, 1)):
            if subject.contract == "reject" and shape == (3, 0):
                continue
            scores, mask = np.zeros(shape, np.float32), np.ones(shape, bool)
            for method, values in results(subject, scores, mask, np.ones(shape, np.float32)):
                assert (values.shape, values.dtype) == (shape, np.float32), f"{subject.id} {method} {shape}"
                expected = 1 if method == "forward" else 0
                assert (values == expected).all(), f"{subject.id} {method} {shape}"


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, "max", "-max"])
def test_blocked_scores_are_never_read(name: str, poison: float | str) -> None:
    subject = the(name)
    for dtype in subject.dtypes:
        value = {"max": 1, "-max": -1}[poison] * FORMATS[dtype].max if isinstance(poison, str) else poison
        scores, vector = batch(dtype)
        clean = dict(results(subject, scores, MASK, vector))
        poisoned = np.where(MASK, scores, np.array(value, scores.dtype))
        for method, values in results(subject, poisoned, MASK, vector):
            assert values.tobytes() == clean[method].tobytes(), f"{name} {dtype} {method}"


@pytest.mark.parametrize("name", [CLEAN[0], CLEAN[1], CLEAN[3]])
def test_references_keep_their_promises(name: str) -> None:
    subject = the(name)
    assert subject.role == "reference"
    assert subject.promises >= {"isolation", "allowed-nan-visible"}
    for dtype in subject.dtypes:
        scores, vector = batch(dtype)
        clean = dict(results(subject, scores, MASK, vector))
        nan_vector = np.where(MASK, vector, np.array(np.nan, scores.dtype))  # also the whole empty row
        for method, values in results(subject, scores, MASK, nan_vector):
            assert values.tobytes() == clean[method].tobytes(), f"{name} {dtype} {method}"
        scores[0, 1] = np.nan
        seen = weights(subject.forward(scores, MASK))
        assert nan(seen[0][MASK[0]]), f"{name} {dtype}"
        assert seen[1:].tobytes() == clean["forward"][1:].tobytes(), f"{name} {dtype}"


@pytest.mark.parametrize(
    "name",
    [
        "numpy.softmax-where",
        *(
            pytest.param(f"torch.{n}", marks=pytest.mark.torch)
            for n in ("softmax-where", "masked-fill", "additive-inf")
        ),
    ],
)
def test_backward_pass_consumes_the_returned_weights(name: str) -> None:
    """The promise ``vjp-from-output``: from the returned weights the halves' VJP is known up to one rounding."""
    subject = the(name)
    assert "vjp-from-output" in subject.promises
    rng = np.random.default_rng(3)
    for dtype in ("float16", "bfloat16"):
        if dtype not in subject.dtypes:
            continue
        kind = FORMATS[dtype]
        scores, vector = (rng.normal(size=(2000, 9)).astype(kind.dtype) for _ in range(2))
        mask = np.ones(scores.shape, bool)
        w = weights(subject.forward(scores, mask)).astype(np.float64)
        v = vector.astype(np.float64)
        centre = (w * v).sum(-1, keepdims=True)
        exact = w * (v - centre)
        returned = subject.vjp(scores, mask, vector).astype(np.float64)  # type: ignore[misc]
        # One rounding to the half format, and up to 13 float32 roundings of the terms (9 additions, 4 operations).
        absolute = w * (np.abs(v) + (w * np.abs(v)).sum(-1, keepdims=True))
        bound = kind.u * np.abs(exact) + 14 * 2.0**-24 * absolute + kind.eta
        assert (np.abs(returned - exact) <= bound).all(), dtype


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_where_after_additive_inf_is_clean_forward_and_nan_backward(adapter: str) -> None:
    (subject,) = resolve([f"{adapter}.where-after-additive-inf*"])
    for dtype in subject.dtypes:
        scores, vector = batch(dtype)
        found = dict(results(subject, scores, MASK, vector))
        assert zero(found["forward"][EMPTY]), dtype
        assert nan(found["vjp"][EMPTY]), dtype
        assert zero(found["jvp"][EMPTY]), dtype
        assert np.isfinite(found["vjp"][[0, 2, 3]].astype(np.float64)).all(), dtype


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_leaks_leak(adapter: str) -> None:
    found = {s.id.partition(".")[2].partition("[")[0]: s for s in resolve([f"{adapter}.*"]) if s.role == "specimen"}
    for dtype in found["replace-min"].dtypes:
        scores, _ = batch(dtype)
        fifth = (np.ones(5) / 5).astype(scores.dtype)
        for name in ("replace-min", "additive-min"):  # scores near 0 vanish beside finfo.min
            assert found[name].contract == "zero"
            assert (weights(found[name].forward(scores, MASK))[EMPTY] == fifth).all(), f"{name} {dtype}"
        assert nan(weights(found["unguarded-inf"].forward(scores, MASK))[EMPTY]), dtype
    scores, _ = batch("float64")
    raw = np.exp(scores[EMPTY]) / np.exp(scores[EMPTY]).sum()
    added = weights(found["additive-1e9"].forward(scores, MASK))[EMPTY]
    # 1e9 has a spacing of 2**-23 in float64, which moves each exponent by at most 2**-24.
    assert (np.abs(np.log(added / raw)) <= 2.0**-22).all()
    assert found["zero-without-flag"].contract == "zero+valid"
    assert not isinstance(found["zero-without-flag"].forward(scores, MASK), Answer)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_what_is_missing_has_a_reason(adapter: str) -> None:
    for subject in resolve([adapter], specimens=True):
        assert subject.adapter == adapter
        assert subject.id.startswith(f"{adapter}.")
        absent = {"vjp", "jvp"} - set(subject.methods) | set(DTYPES) - set(subject.dtypes)
        assert absent == set(subject.unsupported), subject.id


@pytest.mark.jax
def test_jax_keeps_float64_without_touching_the_users_switch() -> None:
    import jax

    before = jax.config.jax_enable_x64
    subject = the("jax.double-where[jit]")
    scores = np.array([[0.0, 1e-12]])
    w = weights(subject.forward(scores, np.ones((1, 2), bool)))
    assert w.dtype == np.float64
    assert w[0, 0] < 0.5 < w[0, 1]  # float32 arithmetic would give one half twice
    assert jax.config.jax_enable_x64 == before


@pytest.mark.jax
def test_jax_without_a_cpu_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    from hardmask.adapters import TargetError, jax_rows

    def devices(kind: str) -> None:
        raise RuntimeError(f"Unknown backend {kind}")

    monkeypatch.setattr(jax, "devices", devices)
    with pytest.raises(TargetError) as raised:
        jax_rows.subjects()
    assert str(raised.value) == (
        "JAX offers no CPU device: RuntimeError: Unknown backend cpu. "
        "Add cpu to the environment variable JAX_PLATFORMS, or unset it."
    )


@pytest.mark.jax
def test_a_jitted_subject_compiles_once_per_shape_and_dtype() -> None:
    import jax

    from hardmask.adapters.jax_rows import jax_subject

    traced = []

    def formula(scores: jax.Array, mask: jax.Array) -> jax.Array:
        traced.append(scores.shape)
        return jax.nn.softmax(scores, where=mask)

    subject = jax_subject("mine.softmax", formula)
    for shape in ((2, 3), (2, 3), (2, 4), (2, 3)):
        subject.forward(np.zeros(shape, np.float32), np.ones(shape, bool))
    assert traced == [(2, 3), (2, 4)]
