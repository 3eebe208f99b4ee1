"""The audit of the oracle in every run: what it counts, what it says, and what becomes of a broken engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.registry import resolve
from hardmask.adapters.subject import Subject
from hardmask.conformance.cases import Case, plan
from hardmask.conformance.certification import Report
from hardmask.conformance.cli import main
from hardmask.conformance.runner import prepare, wanted
from hardmask.conformance.suite_fault import SuiteFault
from hardmask.spec.batch import Bools, Floats
from hardmask.spec.oracle import DoubleDoubleEngine, Exact, ExactWeights, Float64Engine
from hardmask.spec.oracle.audit import Audit

audit_module = import_module("hardmask.conformance.audit")
ENGINES = {"float32": Float64Engine, "float64": DoubleDoubleEngine}
OFF = 1e-12


@pytest.fixture(params=["weights", "derivative"])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both fast engines with an error of 1e-12 in one allowed entry of every row."""

    def shifted(exact: Exact, mask: Bools) -> Exact:
        value = exact.value.copy()
        rows = np.flatnonzero(mask.any(axis=1))
        if len(rows):
            value[rows, mask[rows].argmax(axis=1)] += OFF
        return Exact(value, exact.low, exact.error)

    for engine in ENGINES.values():
        if request.param == "weights":

            def weights(
                self: object, s: Floats, m: Bools, right: Callable[..., ExactWeights] = engine.weights
            ) -> object:
                exact = right(self, s, m)
                return replace(exact, weights=shifted(exact.weights, m))

            monkeypatch.setattr(engine, "weights", weights)
        else:

            def along(
                self: object, w: ExactWeights, v: Floats, right: Callable[..., Exact] = engine.derivative
            ) -> object:
                return shifted(right(self, w, v), w.mask)

            monkeypatch.setattr(engine, "derivative", along)
    return


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("dtype", ENGINES)
def test_a_broken_engine_ends_the_run_with_3(dtype: str) -> None:
    arguments = ["certify", "numpy.softmax-where", "--effort", "smoke", "--dtype", dtype]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith(f"The oracle states an error that it does not keep ({dtype}/")
    assert "audited entries outside. Please report this as a fault of hardmask." in result.stderr


@pytest.mark.usefixtures("broken")
def test_the_fault_names_batch_and_row() -> None:
    case = Case("float32", "shapes", 104, 16, 0, 0)
    with pytest.raises(SuiteFault, match=r"\(float32/shapes/104x16/0, row \d+\)"):
        prepare(case, resolve(["numpy.softmax-where"]))


def audits(subject: Subject, seed: int = 0) -> dict[str, Audit]:
    return {c.key: prepare(c, [subject]).audit for c in plan("smoke", seed, ["float32"]) if wanted(c, [subject])}


def test_one_row_in_a_hundred_of_every_batch_is_audited(good: Subject, changed: Callable[..., Subject]) -> None:
    found = audits(good)
    assert {key: (a.rows, a.checked) for key, a in found.items()} == {
        "float32/empty/8x0/0": (1, 0),
        "float32/one/96x1/0": (1, 3),
        **{f"float32/{kind}/104x16/0": (2, 96) for kind in ("shapes", "poison", "mixture", "empty", "jacobian")},
        "float32/facts/104x16/0": (2, 96),
    }
    assert all(a.outside == 0 for a in found.values())
    assert 0.0 < max(a.share for a in found.values()) <= 1.0
    # Without a derivative to judge, none is computed and none is audited.
    assert sum(a.checked for a in audits(changed("x.forward")).values()) * 3 == sum(a.checked for a in found.values())


def test_the_rows_depend_on_the_seed_and_on_nothing_else(good: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[int]] = []
    right = audit_module.draw

    def draw(*args: object) -> object:
        rows = right(*args)
        drawn.append(rows.tolist())
        return rows

    monkeypatch.setattr(audit_module, "draw", draw)
    for seed in (0, 0, 1):
        drawn.append([])
        audits(good, seed)
    start = [i for i, rows in enumerate(drawn) if not rows]
    runs = [drawn[a + 1 : b] for a, b in zip(start, [*start[1:], len(drawn)], strict=True)]
    assert runs[0] == runs[1] != runs[2]


def test_the_slow_referee_gets_few_rows_and_the_record_says_so(good: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("float32", "shapes", 1552, 16, 0, 0)
    assert prepare(case, [good]).audit.rows == 16
    monkeypatch.setattr(audit_module, "engine_name", lambda: "mpmath")
    assert prepare(case, [good]).audit.rows == audit_module.SLOW == 2


def test_the_certificate_holds_the_audit_and_the_report_a_line(
    good: Subject, judge: Callable[..., Report], tmp_path: Path
) -> None:
    expected = sum(audits(good).values(), Audit())
    record = judge(good).certificate.audit
    assert (record.rows, record.entries, record.share) == (expected.rows, expected.checked, expected.share)
    assert record.engine in ("flint", "mpmath")
    result = CliRunner().invoke(main, ["certify", "numpy.softmax-where", "--effort", "smoke", "--dtype", "float32"])
    record = judge(*resolve(["numpy.softmax-where"])).certificate.audit
    assert f"Oracle audited on {record.rows} rows ({record.entries:,} entries) by {record.engine}: " in result.stdout


def test_every_failure_of_a_real_row_encloses_the_true_value(
    good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    """Finite answers and NaN, weights and derivatives, single entries, sums, differences and promises."""

    def nan(s: Floats, m: Bools, v: Floats) -> Floats:
        return s * np.float32(np.nan)

    def off(s: Floats, m: Bools) -> Floats:
        w: Floats = good.forward(s, m) * np.float32(1.01 if len(s) > 1 else 1)  # type: ignore[operator]
        w[::7] = np.nan
        return w

    def tilted(s: Floats, m: Bools, v: Floats) -> Floats:
        return np.where(m, v * np.arange(s.shape[1]).astype(s.dtype), np.float32(0))

    promises = frozenset({"isolation", "allowed-nan-visible"})
    report = judge(
        changed("x.off", forward=off, vjp=tilted, jvp=good.jvp),
        changed("x.nan", forward=good.forward, vjp=nan, jvp=nan, promises=promises),
    )
    failed = [f for f in report.certificate.findings if f.verdict == "fail"]
    assert {f.witness.quantity for f in failed if f.witness} == {
        "weights", "vjp", "jvp", "row sum", "inner product", "difference",
    }  # fmt: skip
    assert any(f.declaration == "extension:isolation" for f in failed)
    for f in failed:
        assert f.witness is not None, f
        assert f.witness.exact is not None, f
        if f.witness.keys:
            assert f.enclosure is not None, f
            low, high = map(float, f.enclosure)
            assert low <= high <= low + 1e-30 + 1e-15 * abs(low), f
