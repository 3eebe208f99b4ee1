"""The metamorphic mode: right subjects agree with themselves, planted faults at large lengths do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.registry import resolve
from hardmask.adapters.subject import Subject
from hardmask.conformance.cli import main
from hardmask.conformance.metamorphic.record import Comparison, Record
from hardmask.conformance.metamorphic.request import Report, Request, metamorphic
from hardmask.conformance.metamorphic.rows import build, shift
from hardmask.conformance.metamorphic.variants import truncated, variants
from hardmask.spec.formats import DTYPES
from hardmask.spec.oracle import engine_for

LONG = 65536
Changed = Callable[..., Subject]


def run(*subjects: Subject, keys: int = LONG, rows: int = 8, dtype: str = "float32", **more: Any) -> Report:
    return metamorphic(
        Request(tuple(s.id for s in subjects), keys=(keys,), rows=rows, dtypes=(dtype,), **more), subjects=subjects
    )


def failed(report: Report) -> set[tuple[str, str]]:
    return {(c.method, c.relation) for c in report.record.comparisons if c.verdict == "fail"}


def weights(s: Any, m: Any) -> Any:
    return softmax_where(s, m).weights


# --- the rows and their variants --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [1, 2, 17, 1000])
def test_shifts_are_exact(dtype: str, keys: int) -> None:
    rows = build(dtype, 40, keys, seed=3)
    for sign in (1.0, -1.0):
        moved, constant = shift(rows, sign)
        assert moved.dtype == rows.scores.dtype
        assert (moved.astype(float) - constant[:, None] == rows.scores64).all()
        assert (np.sign(constant) == sign).all()
    assert rows.mask.any(axis=1).all()
    assert np.isfinite(rows.scores64).all()


@pytest.mark.parametrize("keys", [1, 2, 9, 64, 100])
def test_no_variant_changes_a_true_weight(keys: int) -> None:
    rows = build("float32", 12, keys, seed=1)
    engine = engine_for("float64")
    true = engine.weights(rows.scores64, rows.mask).weights.value
    kinds = set()
    for v in variants(rows, seed=1):
        theirs = engine.weights(v.scores.astype(float), v.mask).weights.value
        np.testing.assert_allclose(v.back(theirs, keys), true[v.rows], rtol=1e-14, atol=0)
        assert (v.beyond(theirs, keys) == 0).all()
        kinds.add(v.kind)
    pair = truncated(rows)
    assert (pair is None) == (keys < 2)
    if pair is not None:
        base, v = pair
        short = base.shape[1]
        theirs = engine.weights(v.scores.astype(float), v.mask).weights.value
        alone = engine.weights(base.scores64, base.mask).weights.value
        np.testing.assert_allclose(v.back(theirs, short), alone, rtol=1e-14, atol=0)
        assert (v.beyond(theirs, short) == 0).all()
    assert kinds == {"repeat", "non-interference", "shift", "permutation", "padding", "position"}


# --- right subjects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_subject_agrees_with_itself(dtype: str, good: Subject) -> None:
    for keys in (1, 7, 3000):
        report = run(good, keys=keys, rows=40, dtype=dtype)
        assert report.exit_code == 0, [c for c in report.record.comparisons if c.verdict != "pass"]
        assert {c.verdict for c in report.record.comparisons} == {"pass"}
        assert max(c.share or 0.0 for c in report.record.comparisons) < 1.0


@pytest.mark.parametrize(
    ("target", "dtypes"),
    [
        ("numpy", DTYPES),
        pytest.param("torch", ("float32", "bfloat16"), marks=pytest.mark.torch),
        pytest.param("jax.softmax-where[jit]", ("float32",), marks=pytest.mark.jax),
    ],
)
def test_the_built_in_subjects_agree_with_themselves(target: str, dtypes: tuple[str, ...]) -> None:
    """But for adding a bias of -inf, which lets blocked NaN and +inf through."""
    for subject in resolve([target]):
        for dtype in set(dtypes) & set(subject.dtypes):
            found = failed(run(subject, keys=131, rows=12, dtype=dtype))
            leaks = subject.id == "torch.additive-inf"
            assert found == ({(m, "non-interference") for m in subject.methods} if leaks else set()), subject.id


def test_other_bits_at_another_place_are_a_fact(changed: Changed) -> None:
    def wobbling(s: Any, m: Any) -> Any:
        w = weights(s, m)
        return w * np.where(np.arange(len(w)) % 2, 1, 1 + 2.0**-23)[:, None].astype(w.dtype)

    report = run(changed("x.wobbling", forward=wobbling), keys=500)
    assert report.exit_code == 0
    moved = [c for c in report.record.comparisons if c.variant == "batch reversed"]
    assert [(c.verdict, c.diagnosis) for c in moved] == [("pass", "bits differ, within the bound")]
    assert moved[0].identical < moved[0].rows
    assert 0.0 < (moved[0].share or 0.0) < 1.0


def test_a_subject_that_is_not_repeatable_is_judged_by_the_bound(changed: Changed) -> None:
    calls = [0]

    def drifting(s: Any, m: Any) -> Any:
        calls[0] += 1
        return weights(s, m) * np.asarray(1 + calls[0] % 2 * 2.0**-23, s.dtype)

    report = run(changed("x.drifting", forward=drifting), keys=500)
    assert report.exit_code == 0
    relations = {c.relation: c for c in report.record.comparisons}
    assert relations["repeat"].diagnosis == "bits differ, within the bound"
    assert relations["non-interference"].verdict == "pass"


# --- planted faults ---------------------------------------------------------------------------------------------------


def forgetful(s: Any, m: Any) -> Any:
    """The sum of the numerators stops after 4096 keys."""
    x = np.where(m, s, -np.inf)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return (e / np.maximum(e[:, :4096].sum(axis=1, keepdims=True), 1e-30)).astype(s.dtype)


def stale_tile(s: Any, m: Any) -> Any:
    """In the eighth tile of 1024 keys, numerators are computed against the maximum of the tiles before it."""
    x = np.where(m, s, -np.inf).astype(np.float64)
    top = np.broadcast_to(x.max(axis=1, keepdims=True), x.shape).copy()
    if x.shape[1] >= 8192:
        top[:, 7168:8192] = np.maximum(x[:, :7168].max(axis=1, keepdims=True), -1e30)
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.where(m, np.exp(np.minimum(x - top, 50.0)), 0)
        return (e / e.sum(axis=1, keepdims=True)).astype(s.dtype)


def far_reader(s: Any, m: Any) -> Any:
    """Whether a key is blocked is forgotten at key 60007, and the rest renormalised."""
    m = m.copy()
    w = weights(s, m)
    if s.shape[1] > 60007:
        leak = np.where(m[:, 60007], 0.0, np.nan_to_num(s[:, 60007], nan=1.0, posinf=2.0, neginf=0.0))
        w = (w * (1 + 1e-7 * np.clip(leak, -9, 9))[:, None]).astype(s.dtype)
    return w


def placed(s: Any, m: Any) -> Any:
    """From the fifth row of a batch on, the scores are read at half precision."""
    s = s.copy()
    s[4:] = s[4:].astype(np.float16)
    return weights(s, m)


def stateful() -> Callable[[Any, Any], Any]:
    """Every second call returns what the call before returned, if the shapes allow it."""
    kept: list[Any] = [None]

    def forward(s: Any, m: Any) -> Any:
        w = weights(s, m)
        old, kept[0] = kept[0], (None if kept[0] is not None else w * np.asarray(1.01, w.dtype))
        return w if old is None or old.shape != w.shape else old

    return forward


@pytest.mark.parametrize(
    ("fault", "relations"),
    [
        (forgetful, {"row sum is 1", "permutation"}),
        (stale_tile, {"permutation"}),
        (far_reader, {"non-interference"}),
        (placed, {"position"}),
        (stateful(), {"repeat"}),
    ],
    ids=["forgetful", "stale tile", "far reader", "placed", "stateful"],
)
def test_a_planted_fault_is_found(fault: Callable[..., Any], relations: set[str], changed: Changed) -> None:
    report = run(changed("x.fault", forward=fault))
    assert report.exit_code == 1
    assert report.reason == "The answers contradict each other: x.fault."
    assert relations <= {relation for _, relation in failed(report)}, failed(report)
    if fault in (forgetful, stale_tile, far_reader):
        # Invisible at a length that fits into one tile: that is why this mode goes to long rows.
        assert run(changed("x.fault", forward=fault), keys=1000).exit_code == 0


def uncentred(s: Any, m: Any, v: Any) -> Any:
    return np.where(m, weights(s, m) * v, 0).astype(s.dtype)


def leaking(s: Any, m: Any, v: Any) -> Any:
    return softmax_where_derivative(s, m, v) + np.where(m, 0, 1e-6).astype(s.dtype)


def lopsided(s: Any, m: Any, v: Any) -> Any:
    """Beyond key 4096 the centre is not subtracted."""
    y = softmax_where_derivative(s, m, v)
    y[:, 4096:] = uncentred(s, m, v)[:, 4096:]
    return y


@pytest.mark.parametrize(
    ("method", "function", "relations"),
    [
        ("vjp", uncentred, {"column sum is 0", "J 1 = 0", "JVP and VJP agree"}),
        ("jvp", uncentred, {"column sum is 0", "J 1 = 0", "JVP and VJP agree"}),
        ("vjp", leaking, {"blocked keys are 0"}),
        ("vjp", lopsided, {"permutation", "column sum is 0", "<J u, g> = <u, J g>"}),
    ],
)
def test_a_wrong_derivative_is_found(method: str, function: Any, relations: set[str], good: Subject) -> None:
    from dataclasses import replace

    report = run(replace(good, id="x.derivative", **{method: function}), keys=9000)
    assert report.exit_code == 1
    assert relations <= {relation for _, relation in failed(report)}, failed(report)
    assert "forward" not in {m for m, _ in failed(report)}


def test_nan_and_wrong_shapes_are_told(changed: Changed) -> None:
    nan = run(changed("x.nan", forward=lambda s, m: s * np.float32(np.nan)), keys=20)
    assert nan.exit_code == 1
    assert {c.diagnosis for c in nan.record.comparisons if c.verdict == "fail"} == {"not a number"}
    short = run(changed("x.short", forward=lambda s, m: s[:, 1:]), keys=20)
    assert short.exit_code == 1
    assert {c.verdict for c in short.record.comparisons} == {"error", "unsupported"}
    assert "return one value per score" in short.record.comparisons[0].diagnosis


def test_a_custom_model_is_never_a_plain_pass(changed: Changed) -> None:
    report = run(changed("x.custom", model={"alpha": 50.0}), keys=300)
    assert report.exit_code == 0
    found = {c.relation: c for c in report.record.comparisons}
    assert found["row sum is 1"].verdict == "permitted"
    assert "alpha=50.0" in found["row sum is 1"].diagnosis
    assert found["repeat"].verdict == "pass"


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_the_record(tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    arguments = ["numpy.softmax-where", "--keys", "100", "--keys", "77", "--rows", "9", "--dtype", "float16"]
    result = CliRunner().invoke(main, ["metamorphic", *arguments, "--seed", "4", "--json", str(out)])
    assert result.exit_code == 0, result.output
    assert "f16 × 100" in result.stdout
    assert "All answers agree with each other." in result.stdout
    record = msgspec.json.decode(out.read_bytes(), type=Record)
    assert (record.seed, record.rows, record.keys, record.dtypes) == (4, 9, [100, 77], ["float16"])
    assert record.complete
    content = json.loads(out.read_text())
    assert set(content["comparisons"][0]) == set(Comparison.__struct_fields__)
    same = metamorphic(Request(("numpy.softmax-where",), (100, 77), 9, ("float16",), 4)).record
    assert same.comparisons == record.comparisons


def test_the_command_shows_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n\ndef fill(scores, mask):\n    x = np.where(mask, scores, -9)\n"
        "    e = np.exp(x - x.max(axis=1, keepdims=True))\n"
        "    return (e / e.sum(axis=1, keepdims=True)).astype(scores.dtype)\n"
    )
    result = CliRunner().invoke(main, ["metamorphic", f"{file}:fill", "--keys", "50", "--dtype", "float32"])
    assert result.exit_code == 1
    assert "mine.fill · forward · blocked keys are 0 · float32 · 50 keys" in result.stdout
    assert "diagnosis  a blocked key has weight" in result.stdout
    assert result.stdout.endswith("The answers contradict each other: mine.fill.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nunpy"], "There is no target 'nunpy'. Did you mean 'numpy'?"),
        (["numpy", "--dtype", "float8"], "There is no dtype 'float8'."),
        (["numpy", "--keys", "10000000"], "Ask for at most 6 rows (--rows)."),
        (["numpy", "--json", "no/where.json"], "The record cannot be written to 'no/where.json'"),
    ],
)
def test_a_wrong_request_exits_2(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["metamorphic", *arguments])
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""


def test_an_interruption_says_so(changed: Changed) -> None:
    def stopping(s: Any, m: Any) -> Any:
        raise KeyboardInterrupt

    report = run(changed("x.stops", forward=stopping), keys=20)
    assert report.exit_code == 1
    assert report.record.complete is False
