"""The batches: shapes, seeds, exact copies, and enough of everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hardmask.conformance.cases import EFFORTS, plan
from hardmask.conformance.cases.build import KINDS, SHORT, build
from hardmask.conformance.cases.masks import mixed
from hardmask.conformance.cases.plan import SIZES, Case
from hardmask.conformance.cases.poison import POISONS
from hardmask.conformance.cases.scores import SHAPES
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.promises import PROMISES
from hardmask.spec.batch import Batch
from hardmask.spec.formats import DTYPES, FORMATS

ROWS = 208


def made(kind: str, dtype: str = "float32", rows: int = ROWS, keys: int = SHORT, seed: int = 0) -> Batch:
    return Case(dtype, kind, rows, keys, 0, seed).build()


def same(a: Batch, b: Batch) -> bool:
    names = ("scores", "cotangents", "tangents", "mask", "family")
    return all(getattr(a, n).tobytes() == getattr(b, n).tobytes() for n in names)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_batch_has_its_shape_and_dtype(kind: str, dtype: str) -> None:
    keys = 1 if kind == "one" else SHORT
    batch = made(kind, dtype, keys=keys)
    for array in (batch.scores, batch.cotangents, batch.tangents):
        assert array.shape == (ROWS, keys)
        assert array.dtype == FORMATS[dtype].dtype
    assert batch.mask.shape == (ROWS, keys)
    assert batch.mask.dtype == np.bool_
    assert set(np.unique(batch.family)) == set(range(len(batch.families))), "every family has a row"
    if kind != "facts":
        assert batch.real.all()
        assert np.isfinite(batch.cotangents.astype(np.float64)).all()
        assert np.isfinite(batch.tangents.astype(np.float64)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_reproduces_a_batch_bit_for_bit(kind: str) -> None:
    keys = 1 if kind == "one" else SHORT
    first = made(kind, keys=keys, seed=5)
    assert same(first, made(kind, keys=keys, seed=5))
    assert not same(first, made(kind, keys=keys, seed=6))


def test_rounds_differ() -> None:
    first, second = (c for c in plan("smoke", 0, ["float32"], rounds=2) if c.kind == "shapes")
    assert first.key != second.key
    assert not same(first.build(), second.build())


@pytest.mark.parametrize("dtype", DTYPES)
def test_shifted_copies_differ_by_one_number_exactly(dtype: str) -> None:
    batch = made("full", dtype)
    pairs = batch.relations["shift"]
    assert len(pairs) == ROWS // 2
    moved = batch.scores64[pairs[:, 1]] - batch.scores64[pairs[:, 0]]
    assert (moved == moved[:, :1]).all()
    assert (np.abs(moved[:, 0]) >= 8.0).all()
    assert batch.mask.all()


@pytest.mark.parametrize("kind", ["shapes", "causal"])
def test_permuted_and_moved_copies_are_the_same_rows(kind: str) -> None:
    batch = made(kind)
    ((name, pairs),) = batch.relations.items()
    assert (name, len(pairs)) == ({"shapes": "permutation", "causal": "position"}[kind], ROWS // 2)
    order = np.broadcast_to(np.arange(SHORT), (ROWS // 2, SHORT)) if batch.permutation is None else batch.permutation
    assert (np.sort(order, axis=1) == np.arange(SHORT)).all()
    for array in (batch.scores64, batch.mask, batch.cotangents):
        first = np.take_along_axis(array[pairs[:, 0]], order, axis=1)
        assert (first == array[pairs[:, 1]]).all()
    if kind == "causal":
        assert (pairs[:, 0] != np.arange(ROWS // 2)).any()
        assert (batch.mask[: ROWS // 2].sum(axis=1) == np.arange(ROWS // 2) % SHORT + 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_stands_at_blocked_keys_and_one_row_is_empty(dtype: str) -> None:
    batch = made("poison", dtype)
    empty = np.flatnonzero(batch.empty)
    assert len(empty) == 1
    assert not batch.cotangents[empty].astype(np.float64).any()
    assert batch.families == (*(f"poison {p}" for p in POISONS), "one empty row")
    assert np.isfinite(batch.scores64[batch.mask]).all()
    largest = FORMATS[dtype].max
    expected = {"nan": np.isnan, "+inf": lambda x: x == np.inf, "-inf": lambda x: x == -np.inf}
    expected |= {"+max": lambda x: x == largest, "-max": lambda x: x == -largest}
    for code, poison in enumerate(POISONS):
        rows = batch.family == code
        blocked = batch.scores64[rows][~batch.mask[rows]]
        assert len(blocked)
        if poison in expected:
            assert expected[poison](blocked).all()
        else:
            top = np.where(batch.mask[rows], batch.scores64[rows], -np.inf).max(axis=1, keepdims=True)
            assert (batch.scores64[rows] >= top)[~batch.mask[rows]].all()


def test_masks_are_what_their_kind_says() -> None:
    assert (made("single").mask.sum(axis=1) == 1).all()
    assert not made("empty").mask.any()
    truncated = build("truncation", "t", (0,), "float32", ROWS, 31)
    assert not truncated.mask[:, SHORT:].any()
    assert truncated.mask.any(axis=1).all()
    neighbours = made("mixture").empty
    assert (neighbours[1:] & neighbours[:-1]).any(), "two empty rows stand side by side"
    one = made("one", keys=1)
    assert one.families == ("single", "empty")
    assert ((one.family == 1) == one.empty).all()


@pytest.mark.parametrize("keys", [1, 2, SHORT, 131])
def test_masks_of_every_kind_take_turns(keys: int) -> None:
    mask = mixed(np.random.default_rng(0), 28 * 6, keys)
    assert mask.any(axis=1).all()
    if keys < SHORT:
        return
    count, first, last = mask.sum(axis=1), mask.argmax(axis=1), keys - 1 - mask[:, ::-1].argmax(axis=1)
    run = (last - first + 1 == count) & (count > 3) & (count < keys)
    for shape in range(14):
        rows = np.arange(28 * 6) % 14 == shape
        assert (count[rows] == keys).any()
        assert (count[rows] < keys / 2).any()
        assert run[rows].any()
    assert (run & (first == 0)).sum() >= 20
    assert (run & (first > 0) & (last == keys - 1)).any()
    assert (run & (first > 0) & (last < keys - 1)).any()


def test_the_jacobian_is_asked_for_whole() -> None:
    batch = made("jacobian", rows=104)
    groups = batch.relations["jacobian"]
    assert groups.shape == (104 // SHORT, SHORT)
    for group in groups:
        assert (batch.cotangents[group] == np.eye(SHORT)).all()
        assert (batch.tangents[group] == np.eye(SHORT)).all()
        assert (batch.scores[group] == batch.scores[group[0]]).all()


def test_facts_hold_rows_that_are_not_real_and_their_neighbours() -> None:
    batch = made("facts")
    real = {batch.families[c] for c in np.unique(batch.family[batch.real])}
    assert "beside unreal rows" in real
    assert real <= {"beside unreal rows", "empty, nan vector"}
    beside = np.flatnonzero(batch.family == batch.families.index("beside unreal rows"))
    assert not batch.real[beside[1:-1] + 1].all()


def test_vectors_are_seldom_constant() -> None:
    """A constant lies in the null space of the Jacobian: a backward pass of zeros would look right."""
    batch = made("shapes", rows=416)
    for vector in (batch.cotangents, batch.tangents):
        v = np.where(batch.mask, vector, np.nan)[batch.mask.sum(axis=1) > 2]
        constant = np.nanmax(v, axis=1) == np.nanmin(v, axis=1)
        assert 0.0 < constant.mean() < 0.3  # a one-hot vector at a blocked key is constant on the allowed ones
        assert ((vector == 1).sum(axis=1) == 1).any()
        assert (np.abs(vector) > 900).any()
        assert ((np.abs(vector) < 1e-15) & (vector != 0)).any()
        assert (vector == 0).all(axis=1).any()


def test_every_shape_reaches_its_extreme() -> None:
    """The families mean something in every format: underflow reaches 0, stagnation lies at the unit roundoff."""
    for dtype in DTYPES:
        form = FORMATS[dtype]
        batch = made("shapes", dtype, rows=416, keys=131)
        for name in ("underflow", "stagnation", "extreme"):
            rows = batch.scores64[batch.family == tuple(SHAPES).index(name)]
            with np.errstate(over="ignore"):
                gap = rows.max(axis=1, keepdims=True) - rows
            if name == "underflow":
                assert (np.exp(-gap) < form.eta).any()
            elif name == "stagnation":
                level = np.exp(-gap[gap > 0]) / form.u
                assert level.min() > 0.1
                assert level.max() < 10.0
            else:
                assert (gap > form.max).any()
                sizes = np.log2(np.abs(rows[1::3]))
                assert sizes.min() == pytest.approx(10, abs=0.1)
                assert np.diff(np.unique(np.round(sizes)))[1:-1].max() < max(16, np.log2(form.max) / 8)


def test_a_default_run_has_five_lengths_and_one_number_of_rows_for_each() -> None:
    for effort in ("smoke", "default"):
        shapes = {(c.rows, c.keys) for c in plan(effort, 0, DTYPES) if c.layout is None and c.kind != "lengths"}
        assert len({keys for _, keys in shapes}) <= 5
        assert len(shapes) <= 5, "a compiler sees every shape once"
    assert all(n % 2 for n in SIZES["default"].long), "no long row of a default run is a multiple of vector lanes"
    assert {n % 256 == 0 for n in SIZES["deep"].long} == {True, False}, "a deep run has both kinds"
    assert SHORT % 16 == 0, "the short rows are a multiple"
    assert tuple(SIZES) == EFFORTS


@pytest.fixture(scope="module")
def default_run() -> Report:
    return certify(Request(("numpy.softmax-where",), dtypes=("float32",)))


def test_a_default_run_judges_enough_of_every_theorem(default_run: Report, select: Callable[..., list]) -> None:
    optional = {p.name for p in PROMISES.values()}
    for name in default_run.certificate.declarations:
        if name not in optional:
            entries = sum(f.elements for f in select(default_run, name))
            assert entries >= 200_000, f"{name} was judged on {entries} entries only"


def test_a_default_run_of_the_reference_certifies_it_and_comes_close_to_a_budget(default_run: Report) -> None:
    assert default_run.exit_code == 0
    assert max(f.ratio or 0.0 for f in default_run.certificate.findings) > 0.5
