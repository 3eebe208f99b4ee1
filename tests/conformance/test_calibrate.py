"""Calibration: planted errors are measured, forms are told apart, and declarations that do not hold are reported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hardmask.adapters.subject import Subject
from hardmask.conformance.calibrate import calibrate
from hardmask.conformance.calibrate.arguments import Arguments
from hardmask.conformance.calibrate.form import form_of
from hardmask.conformance.cli import main
from hardmask.spec.formats import FORMATS

FEW = 0.0005
U = FORMATS["float32"].u
LAM = FORMATS["float32"].lam
F32 = np.float32

Exp = Callable[[Any], Any]


def subject(exp: Exp, id: str = "test.planted", *, reciprocal: bool = False, **declared: Any) -> Subject:
    """A softmax in the dtype of the scores around ``exp``, a function of ``score - max``."""

    def forward(scores: Any, mask: Any) -> Any:
        with np.errstate(all="ignore"):
            top = np.where(mask, scores, -np.inf).max(axis=1, keepdims=True)
            e = np.where(mask, exp(scores - top), 0).astype(scores.dtype)
            total = e.sum(axis=1, keepdims=True)
            w = e * (1 / total).astype(scores.dtype) if reciprocal else e / total
            return w.astype(scores.dtype)

    return Subject(id, forward, **{"dtypes": ("float32",), **declared})


def accurate(x: Any) -> Any:
    """Correctly rounded, but for cases that no sample meets."""
    return np.exp(x.astype(np.float64)).astype(x.dtype)


def wavy(size: float) -> Exp:
    """An exponential that is wrong by ``size`` u at most, to both sides, before it is rounded."""

    def exp(x: Any) -> Any:
        wide = x.astype(np.float64)
        return (np.exp(wide) * (1.0 + size * U * np.sin(37.0 * wide))).astype(x.dtype)

    return exp


def exp2_form(scores: Any, mask: Any) -> Any:
    """Exponents in base 2, formed from two rounded products."""
    with np.errstate(all="ignore"):
        c = F32(math.log2(math.e))
        scaled = scores * c
        top = np.where(mask, scaled, -np.inf).max(axis=1, keepdims=True)
        e = np.where(mask, np.exp2((scaled - top).astype(np.float64)), 0).astype(np.float32)
        return e / e.sum(axis=1, keepdims=True)


def lse_form(scores: Any, mask: Any) -> Any:
    """Weights rebuilt from a stored log-sum-exp."""
    with np.errstate(all="ignore"):
        top = np.where(mask, scores, -np.inf).max(axis=1, keepdims=True)
        total = np.where(mask, accurate(scores - top), 0).sum(axis=1, keepdims=True)
        stored = (top.astype(np.float64) + np.log(total.astype(np.float64))).astype(np.float32)
        return np.where(mask, accurate(scores - stored), 0).astype(np.float32)


@pytest.mark.parametrize("size", [0.0, 2.0, 20.0, 1000.0])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_a_planted_error_is_measured(size: float, reciprocal: bool) -> None:
    found = calibrate(subject(wavy(size), reciprocal=reciprocal), fraction=FEW)
    low, high = found.measured
    # The rounding of the exponential adds up to one u to what is planted.
    assert size - 0.1 <= low <= high <= size + 1.7
    assert low >= (0.9 if size == 0.0 else size)
    assert found.form is not None
    assert found.form.on_grid
    assert found.form.divisions == (2 if reciprocal else 1)
    assert found.form.shift
    assert found.status == ("fits" if size <= 2.0 else "too tight")


def test_the_argument_of_the_largest_error_is_named() -> None:
    def exp(x: Any) -> Any:
        return np.where((x < -5.0) & (x > -5.0625), accurate(x) * F32(1.0 + 100 * U), accurate(x))

    found = calibrate(subject(exp), fraction=FEW)
    assert found.above is not None
    assert -5.0625 < found.above.argument < -5.0
    assert 98.0 < found.above.lower / U <= found.above.upper / U < 104.0
    assert found.below is not None
    assert found.below.upper / U < 2.0


def test_a_factor_common_to_all_exponentials_is_not_seen() -> None:
    found = calibrate(subject(lambda x: (1.0 + 1e-4) * np.exp(x.astype(np.float64))), fraction=FEW)
    assert found.status == "fits"
    assert found.measured[0] < 2.0


def test_a_constant_error_away_from_0_counts_by_half() -> None:
    """Every common factor is as good as another: an alpha of 5 holds errors that all lie between 0 and 10 u."""

    def exp(x: Any) -> Any:
        return np.where(x < 0.0, np.exp(x.astype(np.float64)) * (1.0 + 10 * U), 1.0)

    found = calibrate(subject(exp), fraction=FEW)
    assert found.declared is not None
    assert 4.9 <= found.declared.lower <= found.declared.upper <= 6.5
    assert 9.0 <= found.measured[0] <= 12.0


@pytest.mark.parametrize("limit", [1.0, 4.0])
def test_flushed_results_are_seen(limit: float) -> None:
    def exp(x: Any) -> Any:
        e = accurate(x)
        return np.where(e < limit * LAM, 0, e)

    found = calibrate(subject(exp), fraction=0.002)
    assert found.tiny is not None
    assert found.tiny.zero_from == pytest.approx(math.log(limit * LAM), abs=1e-2)
    # Up to 1.5 times the smallest normal number every tier lets a result vanish; beyond, none does.
    assert found.status == ("fits" if limit == 1.0 else "too tight")
    if limit == 4.0:
        assert found.supported is None


def test_gradual_underflow_is_measured() -> None:
    found = calibrate(subject(accurate), fraction=0.002)
    assert found.tiny is not None
    assert 0.45 <= found.tiny.lower <= found.tiny.upper <= 0.5001
    assert found.tiny.zero_from == pytest.approx(-103.973, abs=1e-2)


def test_exponents_in_base_2_are_told() -> None:
    strict = calibrate(Subject("test.form", exp2_form, dtypes=("float32",)), fraction=FEW)
    assert strict.status == "too tight"
    assert strict.form is not None
    assert not strict.form.shift
    assert "Declare tier='exp2'" in strict.sentence
    near, far = (max(o.above.lower, o.below.lower) for o in (strict.form.offsets[0], strict.form.offsets[-1]))
    assert far > 50.0 * U > near
    named = calibrate(Subject("test.form", exp2_form, dtypes=("float32",), tier="exp2"), fraction=FEW)
    assert named.status in ("fits", "open")
    assert named.supported is not None
    assert named.supported.tier == "exp2"


def test_weights_rebuilt_from_a_log_sum_exp_do_not_add_up_to_1() -> None:
    found = calibrate(Subject("test.lse", lse_form, dtypes=("float32",)), fraction=FEW)
    assert found.status == "too tight"
    strict, exp2, *_, lse = found.fits
    assert all("add up to 1 only within" in f.objections[-1] for f in (strict, exp2))
    assert lse.tier == "lse"
    assert lse.holds


def test_a_tier_weaker_than_need_be_is_called_generous() -> None:
    found = calibrate(subject(accurate, tier="exp2"), fraction=FEW)
    assert found.status == "generous"
    assert "'strict'" in found.sentence


@pytest.mark.parametrize(("alpha", "status"), [(19.0, "too tight"), (22.0, "fits"), (100.0, "generous")])
def test_a_custom_allowance_is_compared(alpha: float, status: str) -> None:
    found = calibrate(subject(wavy(20.0), model={"alpha": alpha}), fraction=FEW)
    assert found.status == status, found.sentence


def test_a_narrow_sum_is_seen() -> None:
    def forward(scores: Any, mask: Any) -> Any:
        with np.errstate(all="ignore"):
            e = np.where(mask, accurate(scores - np.where(mask, scores, -np.inf).max(axis=1, keepdims=True)), 0)
            total = e.astype(np.float16).cumsum(axis=1, dtype=np.float16)[:, -1:].astype(np.float32)
            return (e / total).astype(np.float32)

    form = form_of(Subject("test.narrow", forward, dtypes=("float32",)), "float32", 0)
    assert form.sum_high < -1000.0
    half = Subject("test.narrow", lambda s, m: forward(s.astype(F32), m).astype(s.dtype), dtypes=("float16",))
    found = calibrate(half, "float16", fraction=0.2)
    assert found.status == "too tight"
    assert "sum of 4,097 terms" in found.sentence


@pytest.mark.parametrize(("native", "tier"), [(True, "half-ops"), (False, "mixed")])
def test_the_compute_format_of_a_half_is_told(native: bool, tier: str) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        x = scores if native else scores.astype(F32)
        with np.errstate(all="ignore"):
            e = np.where(mask, accurate(x - np.where(mask, x, -np.inf).max(axis=1, keepdims=True)), 0).astype(x.dtype)
            return (e / e.sum(axis=1, dtype=F32, keepdims=True).astype(x.dtype)).astype(scores.dtype)

    found = calibrate(Subject("test.half", forward, dtypes=("float16",)), "float16")
    assert found.form is not None
    assert found.form.on_grid is native
    assert found.supported is not None
    assert found.supported.tier == tier
    assert found.status == ("too tight" if native else "open")


def test_float64_is_sampled() -> None:
    found = calibrate(subject(accurate, dtypes=("float64",)), "float64", fraction=0.003)
    low, high = found.measured
    assert 0.8 < low <= high < 2.6  # NumPy's own float64 exp
    assert found.status == "fits"
    assert found.arguments < found.total


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("fraction", [1e-6, 3e-5])
def test_arguments_are_distinct_and_seeded(dtype: str, fraction: float) -> None:
    x = np.concatenate(list(Arguments(dtype, fraction, 1).blocks())).astype(np.float64)
    again = np.concatenate(list(Arguments(dtype, fraction, 1).blocks())).astype(np.float64)
    assert np.array_equal(x, again)
    assert len(x) == Arguments(dtype, fraction, 1).count
    assert np.all(np.diff(x) < 0.0)
    first, last = Arguments(dtype).ends
    assert last <= x[-1] < x[0] <= first


def test_all_arguments_of_a_half_are_walked() -> None:
    x = np.concatenate(list(Arguments("float16").blocks())).astype(np.float64)
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    assert np.array_equal(np.sort(x), np.sort(patterns[(patterns <= -(2.0**-24)) & (patterns >= -18.0)]))


FILE = """
import numpy as np
from hardmask.adapters.subject import Subject

def forward(scores, mask, size={size}):
    with np.errstate(all="ignore"):
        x = scores - np.where(mask, scores, -np.inf).max(axis=1, keepdims=True)
        e = np.where(mask, np.exp(x.astype(np.float64)) * (1.0 + size * np.sin(37.0 * x)), 0).astype(scores.dtype)
        return e / e.sum(axis=1, keepdims=True) + {plus}

mine = Subject("mine.softmax", forward, dtypes=("float32",))
"""


def invoke(tmp_path: Path, *more: str, size: float = 0.0, plus: float = 0.0) -> Result:
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(size=size, plus=plus if plus == plus else "np.float32('nan')"))
    return CliRunner().invoke(main, ["calibrate", f"{path}:mine", "--fraction", "0.0002", *more])


def test_the_command_exits_0_when_the_declaration_holds(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    result = invoke(tmp_path, "--json", str(out))
    assert result.exit_code == 0, result.output
    assert "mine.softmax float32: 53," in result.output
    assert "one rounding: a division" in result.output
    (found,) = json.loads(out.read_text())["calibrations"]
    assert found["status"] == "fits"
    assert found["declared"]["tier"] == "strict"


def test_the_command_exits_1_when_the_declaration_is_too_tight(tmp_path: Path) -> None:
    result = invoke(tmp_path, size=20.0 * U)
    assert result.exit_code == 1
    assert "too tight, exp is worse than that" in result.output
    assert "needs model={'alpha': 2" in result.output


def test_weights_that_tell_nothing_are_reported(tmp_path: Path) -> None:
    result = invoke(tmp_path, plus=math.nan)
    assert result.exit_code == 1
    assert "cannot be calibrated: mine.softmax.forward returned nan as the weight of key 0" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["numpy", "--dtype", "float8"], "There is no dtype 'float8'. Choose from: float64, float32"),
        (["numpy", "--fraction", "0"], "A fraction is above 0 and at most 1; 0 is not."),
        (["numpy", "--fraction", "nan"], "A fraction is above 0 and at most 1; nan is not."),
        (["nunpy"], "There is no target 'nunpy'"),
        (["numpy.fill-inf", "--dtype", "bfloat16"], "None of the subjects takes bfloat16: numpy.fill-inf."),
        (["numpy", "--json", "no/such/folder/x.json"], "its folder is not there"),
    ],
)
def test_a_bad_request_is_a_sentence(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["calibrate", *arguments])
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_function_call_with_a_bad_request_raises() -> None:
    with pytest.raises(ValueError, match=r"test\.planted does not take float64; it takes float32"):
        calibrate(subject(accurate), "float64")
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        calibrate(subject(accurate), fraction=1.5)
