"""Paths that should agree: real disagreements are found and shrunk, rounding is none, and policies are told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.attention import Attention
from hardmask.conformance.fingerprint.consistency import consistency
from hardmask.conformance.fingerprint.record import Disagreement, PathRecord
from hardmask.conformance.fingerprint.report import markdown, print_fingerprint
from hardmask.conformance.fingerprint.report_paths import agreement_line, path_lines, smallest_line
from hardmask.conformance.fingerprint.run import fingerprint

DTYPES = ("float64", "float32", "float16", "bfloat16")


def wide(a: Any) -> Any:
    """The format that the paths compute in."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def weights(s: Any, mask: Any, empty: str = "zero") -> Any:
    """The masked softmax; an empty row is ``zero``, ``nan``, ``uniform`` or ``raw``."""
    allowed = mask.any(axis=-1, keepdims=True)
    mask = mask | (~allowed if empty in ("uniform", "raw") else False)
    s = np.where(allowed | (empty == "raw"), s, 0)
    with np.errstate(all="ignore"):
        top = np.where(mask, s, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
        e = np.where(mask, np.exp(np.where(mask, s - np.where(np.isfinite(top), top, 0), 0)), 0)
        total = e.sum(axis=-1, keepdims=True)
        return (e / np.where((total > 0) | (empty == "nan"), total, 1)).astype(s.dtype)


def path(name: str, empty: str = "zero", *, order: int = 1, change: Any = None, **declared: Any) -> Attention:
    """One path: ``order=-1`` adds up the keys the other way round; ``change(q, k, v, mask)`` alters what it reads."""

    def parts(q: Any, k: Any, v: Any, mask: Any, scale: Any) -> Any:
        each = q.shape[1] // k.shape[1]
        mask = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        if change:
            q, k, v, mask = change(q, k, v, mask)
        q, k, v = wide(q), np.repeat(wide(k), each, axis=1), np.repeat(wide(v), each, axis=1)
        k, v, mask = k[:, :, ::order], v[:, :, ::order], mask[..., ::order]
        s = q.dtype.type(scale) * (q @ np.swapaxes(k, -1, -2))
        return q, k, v, weights(s, mask, empty), each

    def forward(q: Any, k: Any, v: Any, mask: Any, scale: Any) -> Any:
        _, _, v_, w, _ = parts(q, k, v, mask, scale)
        return (w @ v_).astype(q.dtype)

    def vjp(q: Any, k: Any, v: Any, mask: Any, scale: Any, g: Any) -> Any:
        q_, k_, v_, w, each = parts(q, k, v, mask, scale)
        g = wide(g)
        dw = g @ np.swapaxes(v_, -1, -2)
        ds = q_.dtype.type(scale) * w * (dw - (w * dw).sum(axis=-1, keepdims=True))
        dk, dv = np.swapaxes(ds, -1, -2) @ q_, np.swapaxes(w, -1, -2) @ g

        def grouped(a: Any) -> Any:
            return a[:, :, ::order].reshape(a.shape[0], -1, each, *a.shape[2:]).sum(axis=2).astype(q.dtype)

        return (ds @ k_).astype(q.dtype), grouped(dk), grouped(dv)

    declared = {"dtypes": DTYPES, "group": "g", "tier": "fused", **declared}
    return Attention(f"x.{name}", forward, vjp, **declared)


def run(*paths: Attention, dtypes: Any = ("float32",)) -> tuple[list[PathRecord], list[Disagreement]]:
    """The comparison of some paths."""
    return consistency(paths, dtypes)


@pytest.mark.parametrize("empty", ["zero", "nan", "uniform", "raw"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_another_order_of_the_sums_is_no_disagreement(empty: str, dtype: str) -> None:
    records, found = run(path("a", empty), path("b", empty, order=-1), dtypes=(dtype,))
    assert found == []
    second = records[1]
    assert second.arrays > 90
    assert second.disagreeing == 0
    if dtype in ("float64", "float32"):  # otherwise there was nothing to forgive
        assert second.identical < second.arrays
        assert 0.0 < second.share <= 1.0


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("zero", "nan", "NaN"),
        ("nan", "zero", "no NaN"),
        ("zero", "uniform", "value"),
        ("uniform", "raw", "value"),
        ("zero", "raw", "value"),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_two_policies_disagree_on_empty_rows_only(first: str, second: str, kind: str, dtype: str) -> None:
    _, found = run(path("a", first), path("b", second), dtypes=(dtype,))
    assert {d.kind for d in found} == {kind}
    (d,) = found
    assert (d.subject, d.pair) == ("x.b", ["x.a", "x.b"])
    assert set(d.families) <= {"all padding", "one empty query", "causal and padding", "causal bottom-right"}
    assert d.sizes["Lq"] * d.sizes["Lk"] <= 4
    assert not np.asarray(d.input["mask"]).any(axis=-1).all()


def replayed(d: Disagreement, subject: Attention) -> float:
    """The entry that disagrees, from the input of the record alone."""
    form = np.dtype(d.dtype)
    q, k, v = (np.array(d.input[n], dtype=np.float64).astype(form) for n in ("q", "k", "v"))
    arguments = [q, k, v, np.array(d.input["mask"], bool), float(d.input["scale"])]
    if d.method == "vjp":
        assert subject.vjp is not None
        arguments.append(np.array(d.input["cotangent"], dtype=np.float64).astype(form))
        answer = dict(zip(("dq", "dk", "dv"), subject.vjp(*arguments), strict=True))[d.quantity]
    else:
        answer = subject.forward(*arguments)
    return float(np.asarray(answer)[tuple(d.at)])


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (lambda q, k, v, m: (q, k, v, np.ones_like(m)), 2),
        (lambda q, k, v, m: (q, k, v, m | (q.shape[2] == 1)), 2),
        (lambda q, k, v, m: (q, k, v, np.roll(m, 1, axis=-1)), 2),
        (lambda q, k, v, m: (q * q.dtype.type(2), k, v, m), 2),
    ],
)
def test_the_smallest_input_shows_the_disagreement_again(change: Any, keys: int) -> None:
    good, bad = path("good"), path("bad", change=change)
    _, found = run(good, bad)
    value = next(d for d in found if d.kind == "value")
    assert value.sizes["Lk"] <= keys
    assert value.sizes["B"] == value.sizes["H"] == 1
    first, second = replayed(value, good), replayed(value, bad)
    assert [first, second] == [float(v) for v in value.values]
    assert value.bound is not None
    assert abs(first - second) > value.bound


def test_a_fault_of_one_head_of_a_long_problem_is_shrunk() -> None:
    def change(q: Any, k: Any, v: Any, m: Any) -> Any:
        if k.shape[2] > 32:  # beyond a tile
            m = m.copy()
            m[:, 1, :, 32:] = False
        return q, k, v, m

    _, found = run(path("good"), path("bad", change=change))
    value = next(d for d in found if d.kind == "value")
    assert value.sizes["B"] == 1
    assert 33 <= value.sizes["Lk"] <= 65
    assert value.values[0] != value.values[1]
    for name in ("q", "k", "v"):  # the numbers of the record are those that were put
        exact = np.array(value.input[name], dtype=np.float64)
        assert (exact == exact.astype(value.dtype)).all()
    assert value.sizes["Lq"] < 33


def test_most_paths_are_not_said_to_disagree_with_one() -> None:
    paths = [path("odd", "nan"), path("b"), path("c", order=-1)]
    _, found = run(*paths)
    assert {d.subject for d in found} == {"x.odd"}
    assert found[0].against == ["x.b", "x.c"]
    # Of two camps of one size, a reference leads.
    _, found = run(path("odd", "nan"), path("b", role="reference"))
    assert {d.subject for d in found} == {"x.odd"}


def test_a_path_that_raises_is_listed_with_its_sentence() -> None:
    def refuse(q: Any, k: Any, v: Any, m: Any) -> Any:
        if not m.any(axis=-1).all():
            raise ValueError("a query without a key")
        return q, k, v, m

    _, found = run(path("good"), path("bad", change=refuse))
    (d,) = found
    assert (d.kind, d.sizes["Lq"], d.sizes["Lk"]) == ("raises", 1, 1)
    assert "a query without a key" in smallest_line(d)


def test_paths_are_given_only_what_they_take() -> None:
    def lengths(q: Any, k: Any, v: Any, m: Any) -> Any:
        assert (m == m[:, :1, :1]).all()
        return q, k, v, m

    narrow = replace(
        path("narrow", change=lengths, encoding="lengths"),
        limits={"grouped heads": "One key for each head.", "queries other than keys": "It is square."},
    )
    records, found = run(path("a"), narrow)
    assert found == []
    assert {r.subject for r in records} == {"x.a", "x.narrow"}
    assert all(r.arrays for r in records)


def test_groups_are_kept_apart() -> None:
    records, found = run(path("a"), path("b", "nan", group="h"), path("c", "nan", group=""))
    assert (records, found) == ([], [])


def test_what_disagrees_is_shown() -> None:
    record = fingerprint((), dtypes=("float32", "float64"), subjects=[path("a"), path("b", "nan")])
    assert {d.kind for d in record.disagreements} == {"NaN"}
    (line,) = path_lines(record, "g")
    assert line[:4] == ("x.b", "NaN, most a number", "output, dq, dk, dv", "f32 f64")
    sentence = smallest_line(record.disagreements[0])
    assert sentence.startswith("x.b against x.a, float32, batch 1, heads 1, queries 1, keys 1, width 1: output")
    assert "is nan against 0" in sentence
    assert "mask [[[[False]]]]" in sentence
    assert "2 paths" in agreement_line(record, "g")
    page = markdown(record)
    assert "| paths that disagree |" in page
    assert f"- {sentence}" in page

    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    print_fingerprint(record, Console(file=stream, width=80, markup=False))
    assert "Paths that disagree" in stream.getvalue()
    tables = stream.getvalue().partition("x.a ·")[0].splitlines()
    assert len(tables) > 6
    assert max(map(len, tables)) <= 80
