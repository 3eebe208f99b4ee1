"""The declarations of axes and of what one opts in to, PyTorch along a first axis, and compiled PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters import Subject, TargetError, resolve
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main


def forward(scores: Any, mask: Any, axis: int = -1) -> Any:
    return scores


def test_the_dtypes_of_any_axis() -> None:
    assert not Subject("a.b", forward).takes_axis("float32")
    every = Subject("a.b", forward, any_axis=True)
    assert [every.takes_axis(d) for d in ("float32", "float16")] == [True, False]
    some = Subject("a.b", forward, any_axis=("float64",))
    assert [some.takes_axis(d) for d in ("float64", "float32")] == [True, False]
    with pytest.raises(ValueError, match="takes any axis in 'float16', which is none of its dtypes: float32, float64"):
        Subject("a.b", forward, any_axis=("float16",))


def test_the_tier_along_other_axes() -> None:
    halves = {"dtypes": ("float16", "float32"), "any_axis": True}
    subject = Subject("a.b", forward, tier={"jvp:half": "half-ops"}, tier_other_axis={"half": "mixed-2"}, **halves)  # type: ignore[arg-type]
    other = subject.along_other_axis()
    assert [s.tier_for("forward", "float16") for s in (subject, other)] == ["mixed", "mixed-2"]
    assert other.tier_for("jvp", "float16") == "half-ops"
    assert other.tier_for("forward", "float32") == "strict"
    named = Subject("a.b", forward, tier="lse", tier_other_axis={"forward:half": "half-ops"}, **halves)  # type: ignore[arg-type]
    assert named.along_other_axis().tier_for("forward", "float16") == "half-ops"
    assert named.along_other_axis().tier_for("vjp", "float32") == "lse"
    with pytest.raises(ValueError, match="declares a tier for 'quarter'"):
        Subject("a.b", forward, tier_other_axis={"quarter": "mixed"})
    with pytest.raises(ValueError, match="declares the tier 'loose'"):
        Subject("a.b", forward, tier_other_axis={"half": "loose"})


@pytest.mark.torch
def test_a_compiled_subject_runs_only_when_it_is_named() -> None:
    compiled = ["torch.softmax-where[compile]", "torch.masked-fill[compile]"]
    assert not set(compiled) & {s.id for s in resolve(["torch"], specimens=True)}
    assert [s.id for s in resolve(["torch.*[compile]"])] == compiled
    assert [s.id for s in resolve([compiled[0]])] == compiled[:1]
    shown = CliRunner().invoke(main, ["list"]).stdout
    assert f"Only when named, because compiling takes a minute or two: {', '.join(compiled)}" in shown


@pytest.mark.torch
def test_a_first_axis_is_what_the_kernel_sees() -> None:
    import torch

    from hardmask.adapters.torch_rows import along_first

    seen = []

    def formula(scores: torch.Tensor, mask: torch.Tensor, dim: int) -> torch.Tensor:
        seen.append((tuple(scores.shape), scores.is_contiguous(), tuple(mask.shape), dim))
        return torch.softmax(scores, dim)

    along_first(formula)(torch.zeros(5, 3), torch.ones(5, 3, dtype=torch.bool))
    assert seen == [((3, 5), True, (3, 5), 0)]
    report = certify(Request(("torch.*[dim=0]",), effort="smoke"))
    assert report.exit_code == 0
    assert {s.path for s in report.certificate.subjects} == {"dim=0"}


@pytest.mark.torch
def test_strides_reach_the_tensor() -> None:
    from hardmask.adapters.torch_arrays import over

    array = np.zeros((4, 6), np.float32)
    for view in (array, array.T, array[::2, ::3]):
        tensor = over(view)
        assert tensor.stride() == tuple(s // 4 for s in view.strides)
        tensor += 1
        assert (view > 0).all()
    assert over(array[::-1]).numpy().tolist() == array[::-1].tolist()


@pytest.mark.torch
def test_compiled_softmax_keeps_what_it_declares_in_one_dtype() -> None:
    """For real, once: the compiler takes most of the time. 'hardmask certify' runs all dtypes."""
    report = certify(Request(("torch.masked-fill[compile]",), dtypes=("bfloat16",), effort="smoke"))
    assert report.exit_code == 0, report.reason
    judged = {f.declaration for f in report.certificate.findings if f.checked}
    assert any(name.endswith("backward_eq_derivative") for name in judged)
    assert any(name.endswith("derivative_apply") for name in judged)


@pytest.mark.torch
def test_without_a_compiler_a_compiled_subject_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from hardmask.adapters import torch_compiled

    monkeypatch.setattr(torch_compiled.shutil, "which", lambda name: None)
    monkeypatch.setattr(torch_compiled, "no_compiler", torch_compiled.no_compiler.__wrapped__)
    mine = torch_compiled.compiled_subject("mine.same", lambda s, m: s * 1.0)
    with pytest.raises(TargetError, match=r"needs? the C\+\+ compiler|finds no C\+\+ compiler"):
        mine.forward(np.zeros((1, 2), np.float32), np.ones((1, 2), bool))
