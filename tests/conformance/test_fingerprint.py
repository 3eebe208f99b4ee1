"""The policy fingerprint: every policy is named, whatever it hides behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.attention import Attention, AttentionAnswer
from hardmask.adapters.subject import Subject
from hardmask.conformance.attention.masks import causal
from hardmask.conformance.cli import main
from hardmask.conformance.fingerprint import policy
from hardmask.conformance.fingerprint.layouts import arranged, width
from hardmask.conformance.fingerprint.record import Fingerprint, Record
from hardmask.conformance.fingerprint.report import (
    blocked_cell,
    breach_lines,
    isolation_cell,
    markdown,
    mask_cell,
    rows,
)
from hardmask.conformance.fingerprint.run import fingerprint

SCORES = np.array([0.0, 1.0, 2.0, 3.0])
PARTIAL = np.array([True, True, True, False])


def of(subject: Subject | Attention, dtype: str = "float32") -> Fingerprint:
    """The fingerprint of one subject in one dtype."""
    (found,) = fingerprint((), dtypes=(dtype,), subjects=[subject]).fingerprints
    return found


def masked(s: Any, mask: Any, fill: Any = -np.inf) -> Any:
    """The unguarded softmax of filled scores."""
    x = np.where(mask, s, np.asarray(fill, s.dtype))
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


def guarded(s: Any, mask: Any) -> Any:
    """The double-where softmax."""
    allowed = mask.any(axis=-1, keepdims=True)
    return np.where(mask, masked(np.where(mask, s, 0), mask | ~allowed), np.asarray(0, s.dtype))


def attention(weights: Any, *, select: bool = True, **declared: Any) -> Attention:
    """An attention from a function of scores and mask, with derivatives; ``select`` zeroes what nobody may read."""

    def parts(q: Any, k: Any, v: Any, mask: Any, scale: Any) -> Any:
        mask = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        if select:
            unseen = ~mask.any(axis=(1, 2)) if mask.shape[1] == 1 else ~mask.any(axis=2)
            unseen = np.broadcast_to(unseen if unseen.ndim == 3 else unseen[:, None], k.shape[:3])
            k, v = np.where(unseen[..., None], 0, k).astype(k.dtype), np.where(unseen[..., None], 0, v).astype(v.dtype)
        with np.errstate(all="ignore"):
            return weights((scale * (q @ np.swapaxes(k, -1, -2))).astype(q.dtype), mask), k, v, mask

    def forward(q: Any, k: Any, v: Any, mask: Any, scale: Any) -> Any:
        w, _, v, _ = parts(q, k, v, mask, scale)
        return w @ v

    def vjp(q: Any, k: Any, v: Any, mask: Any, scale: Any, g: Any) -> Any:
        w, k, v, m = parts(q, k, v, mask, scale)
        if select:
            g = np.where(m.any(axis=-1)[..., None], g, 0).astype(g.dtype)
        dw = g @ np.swapaxes(v, -1, -2)
        ds = (scale * w * (dw - (w * dw).sum(axis=-1, keepdims=True))).astype(q.dtype)
        return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(w, -1, -2) @ g

    def jvp(q: Any, k: Any, v: Any, mask: Any, scale: Any, tangents: Any) -> Any:
        w, k, v, _ = parts(q, k, v, mask, scale)
        dq, dk, dv = tangents
        moved = scale * (dq @ np.swapaxes(k, -1, -2) + q @ np.swapaxes(dk, -1, -2))
        return ((w * (moved - (w * moved).sum(axis=-1, keepdims=True))) @ v + w @ dv).astype(q.dtype)

    return Attention("x.attention", forward, vjp, jvp, **declared)


def penalised(penalty: float) -> Any:
    """Adds a finite penalty at blocked keys."""
    return lambda s, m: masked(s + np.where(m, 0, penalty).astype(s.dtype), np.ones_like(m))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_names_of_empty_rows_do_not_depend_on_rounding(dtype: str) -> None:
    form = policy.FORMATS[dtype].dtype
    cases = {
        "zero": np.zeros(4),
        "NaN": np.full(4, np.nan),
        "partly NaN": np.array([np.nan, 0, 0, 1]),
        "infinite": np.array([np.inf, 0, 0, 0]),
        "uniform": np.full(4, 0.25),
        "raw softmax": policy.softmax(SCORES),
        "weight 1 each": np.ones(4),
        "one key": np.array([0.0, 1, 0, 0]),
        "other": np.array([0.5, 0.5, 0, 0]),
    }
    u = policy.FORMATS[dtype].u
    for name, weights in cases.items():
        assert policy.empty_row(weights.astype(form), SCORES, dtype) == name
        if name not in ("zero", "one key"):
            assert policy.empty_row((weights * (1 + 3 * u)).astype(form), SCORES, dtype) == name


def test_a_tiny_weight_is_not_zero() -> None:
    assert policy.empty_row(np.array([0.0, 1e-300, 0.0, 0.0]), SCORES, "float64") == "other"
    assert policy.leak(np.array([0.5, 0.5, 0.0, -1e-300]), PARTIAL) == 1e-300
    assert np.isnan(policy.leak(np.array([0.5, 0.5, 0.0, np.nan]), PARTIAL))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_readings_of_a_mask_are_told_apart(dtype: str) -> None:
    form = policy.FORMATS[dtype].dtype
    readings = {
        "allowed": policy.softmax(SCORES, PARTIAL),
        "blocked": policy.softmax(SCORES, ~PARTIAL),
        "ignored": policy.softmax(SCORES),
        "added": policy.softmax(SCORES + PARTIAL),
        "multiplied": policy.softmax(SCORES * PARTIAL),
        "other": np.array([0.5, 0.5, 0.0, 0.0]),
    }
    for name, weights in readings.items():
        assert policy.mask_reading(weights.astype(form), SCORES, PARTIAL, dtype) == name


def test_rows_of_minus_infinity() -> None:
    mask = np.array([True, True, False, False])
    for name, weights in {
        "uniform allowed": [0.5, 0.5, 0, 0],
        "uniform all": [0.25] * 4,
        "blocked keys": [0, 0, 0.5, 0.5],
        "zero": [0, 0, 0, 0],
        "NaN": [np.nan, np.nan, 0, 0],
        "partly NaN": [np.nan, 0, 0, 0],
        "other": [1, 0, 0, 0],
    }.items():
        assert policy.infinite_row(np.array(weights), mask, "float32") == name


@pytest.mark.parametrize(("queries", "keys"), [(2, 4), (6, 4), (1, 3), (3, 1)])
def test_alignments(queries: int, keys: int) -> None:
    for corner in ("top-left", "bottom-right"):
        seen = causal(queries, keys, corner)  # type: ignore[arg-type]
        assert policy.alignment(seen) in (corner, "both")
        if (queries, keys) != (3, 1):
            assert policy.alignment(seen) == corner
        # What an empty row gives is another question.
        assert policy.alignment(seen | ~seen.any(axis=1, keepdims=True)) in (corner, "both")
    if keys > 1:
        assert policy.alignment(np.ones((queries, keys), bool)) in ("none", "bottom-right")
        assert policy.alignment(np.eye(queries, keys, dtype=bool)[:, ::-1]) == "other"


@pytest.mark.parametrize(
    ("function", "empty", "blocked", "mask"),
    [
        (guarded, "zero", 0.0, "allowed"),
        (masked, "NaN", 0.0, "allowed"),
        (lambda s, m: masked(s, m, np.finfo(s.dtype).min), "uniform", 0.0, "allowed"),
        (lambda s, m: masked(s, ~m), "NaN", 0.0, "blocked"),
        (lambda s, m: guarded(s, ~m), "zero", 0.0, "blocked"),
        (lambda s, m: masked(s, np.ones_like(m)), "raw softmax", None, "ignored"),
        (lambda s, m: masked(s + m, np.ones_like(m)), "raw softmax", None, "added"),
        (lambda s, m: masked(s * m, np.ones_like(m)), "uniform", None, "multiplied"),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_function_of_rows(function: Any, empty: str, blocked: float | None, mask: str, dtype: str) -> None:
    found = of(Subject("x.y", function, dtypes=(dtype,)), dtype)
    assert found.mask == mask
    assert found.empty_row.forward == empty
    assert found.blocked_weight is not None
    assert (found.blocked_weight == 0.0) == (blocked == 0.0)
    assert found.derivatives["vjp"] == "The subject does not offer it."


def test_a_penalty_leaks_from_its_own_size_on() -> None:
    found = of(Subject("x.y", penalised(-1e4)))
    assert (found.blocked_weight, found.leaks_from, found.reading) == (0.0, 1e4, "shift")
    assert found.infinite_row == "blocked keys"
    assert blocked_cell(found) == "0, ≥1e4, shift"
    assert of(Subject("x.y", guarded)).leaks_from is None


def test_a_subject_that_raises_is_an_error_with_its_sentence() -> None:
    def reject(s: Any, m: Any) -> Any:
        if not m.any(axis=-1).all():
            raise ValueError("an empty row")
        return masked(s, m)

    found = of(Subject("x.y", reject, vjp=lambda s, m, g: reject(s, m) * g))
    assert (found.empty_row.forward, found.empty_row.vjp, found.mask) == ("error", "error", "allowed")
    assert any("an empty row" in sentence for sentence in found.errors)


def test_the_isolation_of_rows_is_shown_by_the_smallest_input() -> None:
    def multiplies(s: Any, m: Any) -> Any:
        with np.errstate(all="ignore"):
            e = np.exp(s) * m
            return e / np.maximum(e.sum(axis=-1, keepdims=True), np.asarray(1e-30, s.dtype))

    (reached,) = [i for i in of(Subject("x.y", multiplies)).isolation if i.poison == "NaN"]
    assert (reached.place, reached.method, reached.verdict) == ("blocked score", "forward", "reached")
    assert reached.input == {"scores": [["0", "nan"]], "mask": [[True, False]]}
    assert "weights" in reached.detail
    assert {i.verdict for i in of(Subject("x.y", guarded)).isolation} == {"kept"}


def test_an_answer_that_changes_from_call_to_call_is_not_compared() -> None:
    rng = np.random.default_rng(0)
    restless = Subject("x.y", lambda s, m: guarded(s, m) * np.asarray(rng.uniform(0.9, 1.1), s.dtype))
    assert {i.verdict for i in of(restless).isolation} == {"not reproducible"}


def test_the_nan_of_an_allowed_score() -> None:
    hides = Subject("x.y", lambda s, m: guarded(np.nan_to_num(s), m))
    assert of(hides).allowed_nan == {"score": "hidden"}
    assert of(Subject("x.y", guarded)).allowed_nan == {"score": "visible"}


@pytest.mark.parametrize(
    ("weights", "empty", "derivative", "infinite"),
    [
        (guarded, "zero", "zero", "NaN"),
        (masked, "NaN", "NaN", "NaN"),
        (lambda s, m: masked(s, m, np.finfo(s.dtype).min), "mean of V", "other", "blocked keys"),
        (lambda s, m: masked(s, np.ones_like(m)), "raw softmax", "other", "blocked keys"),
        (lambda s, m: np.where(m.any(-1, keepdims=True), guarded(s, m), 1).astype(s.dtype), "sum of V", "other", "NaN"),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_the_empty_row_of_an_attention(weights: Any, empty: str, derivative: str, infinite: str, dtype: str) -> None:
    found = of(attention(weights, select=False, dtypes=(dtype,)), dtype)
    assert found.empty_row.forward == empty
    assert (found.empty_row.vjp, found.empty_row.jvp) == (derivative, derivative)
    assert found.infinite_row == infinite
    assert found.empty_row.spreads == (["dk", "dv"] if empty == "NaN" else [])


def test_an_empty_query_may_be_a_whole_batch_entry() -> None:
    plain = attention(guarded)
    for subject in (
        replace(plain, encoding="lengths"),
        replace(plain, limits={"mask per query": "It is told a mask of keys."}),
    ):
        found = of(subject)
        assert (found.empty_row.forward, found.empty_row.vjp, found.mask) == ("zero", "zero", "allowed")


def test_an_attention_that_blocks_where_true_is_shows_its_policy_too() -> None:
    found = of(attention(lambda s, m: masked(s, ~m, np.finfo(s.dtype).min), select=False, convention="blocked"))
    assert (found.mask, found.empty_row.forward, found.leaks_from) == ("blocked", "mean of V", None)
    assert mask_cell(found) == "read as blocked"


def test_weights_beside_an_output_are_named_too() -> None:
    def forward(q: Any, k: Any, v: Any, mask: Any, scale: Any) -> AttentionAnswer:
        s = (scale * (q @ np.swapaxes(k, -1, -2))).astype(q.dtype)
        mask = np.broadcast_to(mask, s.shape)
        return AttentionAnswer(guarded(s, mask) @ v, masked(s, mask), mask.any(axis=-1))

    found = of(Attention("x.y", forward))
    assert (found.empty_row.forward, found.empty_row.weights, found.empty_row.valid) == ("zero", "NaN", True)


@pytest.mark.parametrize("corner", ["top-left", "bottom-right"])
@pytest.mark.parametrize("declared", [None, "top-left"])
def test_a_causal_flag_is_read_from_the_answers(corner: Any, declared: Any) -> None:
    def weights(s: Any, m: Any) -> Any:
        return guarded(s, np.broadcast_to(causal(*s.shape[2:], corner), s.shape))

    found = of(attention(weights, select=False, encoding="causal", causal=declared))
    assert found.causal == corner == mask_cell(found)
    # Only the one alignment has queries without a key.
    assert found.empty_row.forward == ("zero" if corner == "bottom-right" else "unreachable")
    ignores = attention(lambda s, m: masked(s, np.ones_like(m)), select=False, encoding="causal")
    assert of(ignores).causal == "none"
    square = {"queries other than keys": "It is square."}
    assert of(attention(weights, select=False, encoding="causal", limits=square)).causal == "both"


def test_the_isolation_of_an_attention() -> None:
    good = of(attention(guarded))
    assert {i.verdict for i in good.isolation} == {"kept"}
    assert {i.place for i in good.isolation} == {"blocked key", "blocked value", "cotangent of an empty row"}
    bad = of(attention(guarded, select=False))
    assert isolation_cell(bad.isolation) == "K:vj V:fvj g:v"
    value = next(i for i in bad.isolation if i.place == "blocked value" and i.poison == "NaN")
    assert (value.verdict, value.method, value.input["v"]) == ("reached", "forward", [[[["1"], ["nan"]]]])
    assert value.input["mask"] == [[[[True, False]]]]
    record = fingerprint((), dtypes=("float32",), subjects=[attention(guarded, select=False)])
    (line,) = [b for b in breach_lines(record) if "· forward ·" in b]
    assert line.startswith(
        "x.attention · forward · float32 · NaN at a blocked value: output[0, 0, 0, 0] is nan instead"
    )
    assert "v [[[[1], [nan]]]], mask [[[[True, False]]]]" in line
    assert good.allowed_nan == {"key": "visible", "value": "visible"}


def test_a_fault_that_the_smallest_problem_does_not_show_is_found_on_the_next() -> None:
    def weights(s: Any, m: Any) -> Any:
        return guarded(s, m) if s.shape[-1] < 4 else masked(np.where(m, s, s * 0), m)

    found = [i for i in of(attention(weights, select=False)).isolation if i.place == "blocked key"]
    forward = {i.poison: i for i in found if i.method == "forward"}
    assert forward["NaN"].verdict == "kept" or len(forward["NaN"].input["k"][0][0]) == 4


def test_a_path_that_fails_on_the_smallest_problem_is_asked_on_the_next() -> None:
    def weights(s: Any, m: Any) -> Any:
        if s.shape[-1] < 4:
            raise ValueError("too small")
        return guarded(s, m)

    found = of(attention(weights)).isolation
    assert {i.verdict for i in found} == {"kept"}


def test_finite_constants_are_read_as_what_they_do() -> None:
    for penalty, dtype, reading in (
        (-1e4, "float64", "shift"),
        (-1e9, "float32", "replacement"),
        (-np.inf, "float32", "overflow"),
    ):
        found = of(attention(penalised(penalty), encoding="finite"), dtype)
        assert found.reading == reading, penalty
    assert of(attention(guarded, encoding="finite")).reading == "mask"


def test_problems_respect_limits() -> None:
    narrow = attention(guarded, limits={"head width": "Multiples of 8."})
    assert width(replace(narrow, widths=lambda d: d % 8 == 0), 4) == 16  # its root is exact
    assert width(replace(narrow, widths=lambda d: d == 8), 4) == 8
    assert width(replace(narrow, widths=lambda d: d > 999), 4) is None
    found = of(replace(narrow, widths=lambda d: d > 999))
    assert found.empty_row.forward == "error"
    assert "no head" in found.errors[0]
    assert of(replace(narrow, widths=lambda d: d == 8)).empty_row.forward == "zero"
    made = arranged(replace(narrow, encoding="causal"), [(True, False)], 0)
    assert made is not None
    assert made.causal == "top-left"
    assert arranged(replace(narrow, encoding="causal"), [(False, True)], 0) is None


def test_dtypes_that_answer_alike_share_a_line() -> None:
    record = fingerprint(["numpy.additive-1e9", "numpy.softmax-where"])
    lines = list(rows(record.fingerprints, lambda f: (f.empty_row.forward,), "numpy."))
    assert lines == [
        ("additive-1e9", "f64", "raw softmax"),
        ("", "f32", "uniform"),
        ("softmax-where", "all", "zero"),
    ]
    assert {(s.subject, s.dtype) for s in record.skipped} == {
        ("numpy.additive-1e9", "float16"),
        ("numpy.additive-1e9", "bfloat16"),
    }


def test_paths_stand_below_their_entry_point() -> None:
    paths = [Subject(id, guarded) for id in ("user.f[a]", "user.f[b]", "user.g[c]", "user.f[d]", "user.h", "user.h[e]")]
    found = fingerprint((), dtypes=("float32",), subjects=paths).fingerprints
    names = [line[0] for line in rows(found, lambda f: (), "user.", nested=True)]
    assert names == ["f", "  [a]", "  [b]", "g[c]", "f", "  [d]", "h", "  [e]"]


def test_the_command_writes_what_it_shows(tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "f.json"), "--markdown", str(tmp_path / "f.md")]
    result = CliRunner().invoke(main, ["fingerprint", "numpy", "--dtype", "float32", *files])
    assert result.exit_code == 0
    text = (tmp_path / "f.json").read_text()
    record = msgspec.json.decode(text, type=Record)
    by_id = {f.subject: f for f in record.fingerprints}
    assert by_id["numpy.softmax-where"].empty_row.forward == "zero"
    assert by_id["numpy.fill-inf"].empty_row.forward == "NaN"
    assert list(json.loads(text)) == list(Record.__struct_fields__)
    page = (tmp_path / "f.md").read_text()
    assert "| `fill-inf` | f32 | NaN |" in page
    assert page == markdown(msgspec.structs.replace(record, seconds=1e9))


def test_bad_requests_are_sentences() -> None:
    for arguments in (["numpy.nothing"], ["numpy", "--dtype", "float8"], ["numpy", "--json", "no/such/folder/x.json"]):
        result = CliRunner().invoke(main, ["fingerprint", *arguments])
        assert result.exit_code == 2
        assert result.output.count("\n") == 1


def test_an_interruption_keeps_what_was_probed() -> None:
    def interrupt(s: Any, m: Any) -> Any:
        raise KeyboardInterrupt

    record = fingerprint(
        (), dtypes=("float32",), subjects=[Subject("x.good", guarded), Subject("x.interrupted", interrupt)]
    )
    assert not record.complete
    assert [f.subject for f in record.fingerprints] == ["x.good"]
