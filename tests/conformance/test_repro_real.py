"""Real failures of the installed frameworks as scripts that are short, standalone, and show the fault of the finding.

The findings come from the ordinary checks, put to the framework itself, on few and small problems so that it is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from hardmask.conformance import certification
from hardmask.conformance.attention import plan as attention
from hardmask.conformance.attention.plan import AttentionCase
from hardmask.conformance.cases import plan
from hardmask.conformance.certificate import write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.replay import failing

from .test_repro import executed

LONGEST = 45
"""Lines of a script, at most: what a reader of a bug report sees at once."""

SHAPE = (1, 1, 1, 2, 3, 2, 2)
MASKS = (("all padding", "plain"), ("random", "plain"), ("one empty query", "plain"), ("keys alone", "poison"))

ROW = "extension:empty-row"
QUERY = "extension:attention-empty-row"
BACKWARD = "Spec.scaledDotProductAttentionBackward"
OTHER = "extension:attention-blocked-gradient-zero"
SPREAD = "NN.Proofs.Models.Attention.hardMaskedSoftmaxSpec_blocked_eq_zero"

FAULTS = [
    # Subject, dtype, declaration, diagnosis, and what the script has to print as what came back.
    ("torch.masked-fill", "float32", ROW, "NaN", "nan"),
    ("torch.masked-softmax", "float32", ROW, "NaN", "nan"),
    ("torch.additive-inf", "float32", "extension:score-non-interference", "NaN", "nan"),
    ("torch.multihead_attention[train,weights]", "float32", QUERY, "NaN", "nan"),
    ("torch.multihead_attention[train,weights]", "float32", BACKWARD, "NaN", "nan"),
    ("torch.multihead_attention[eval,even-heads]", "float32", QUERY, "NaN", "nan"),
    ("torch.multihead_attention[eval,even-heads,weights]", "float32", SPREAD, "leak", "nan"),
    ("onnx.sdpa[opset18]", "float32", QUERY, "mean of values", ""),
    ("jax.fill-inf[jit]", "float32", ROW, "NaN", "nan"),
    ("jax.dot_product_attention[jit]", "float32", QUERY, "mean of values", ""),
    ("jax.dot_product_attention[jit]", "float32", BACKWARD, "wrong dv", ""),
    ("jax.dot_product_attention[jit]", "float64", "Spec.scaledDotProductAttention", "", ""),
    ("jax.dot_product_attention[jit,-inf]", "float32", QUERY, "NaN", "nan"),
    ("jax.dot_product_attention[jit,lengths]", "float32", QUERY, "mean of values", ""),
    ("flax.linen.dot_product_attention[jit]", "float32", QUERY, "mean of values", ""),
    ("flax.linen.MultiHeadDotProductAttention[jit]", "float32", QUERY, "mean of values", ""),
]


def marked(fault: tuple[str, ...]) -> object:
    adapter = fault[0].partition(".")[0]
    marks = [
        getattr(pytest.mark, m)
        for m in ({"flax": ["jax", "flax"], "onnx": ["onnxruntime", "torch"]}.get(adapter, [adapter]))
    ]
    return pytest.param(*fault, marks=marks, id=f"{fault[0]}, {fault[1]}, {fault[3] or fault[2]}")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of few cases: short rows alone, and attention of one head, two queries and three keys."""

    def problems(effort: str, seed: int, dtypes: Sequence[str], rounds: int | None = None) -> list[AttentionCase]:
        return [AttentionCase(d, SHAPE, mask, content, seed) for d in dtypes for mask, content in MASKS]

    monkeypatch.setattr(attention, "plan_attention", problems)
    monkeypatch.setattr(attention, "FEW", (SHAPE,))
    monkeypatch.setattr(
        certification, "plan", lambda *given: [c for c in plan(*given) if c.keys <= 16 and c.layout is None]
    )


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("target", "dtype", "declaration", "diagnosis", "back"), [marked(f) for f in FAULTS])
def test_a_failure_of_a_framework_shows_without_hardmask(
    target: str, dtype: str, declaration: str, diagnosis: str, back: str, tmp_path: Path
) -> None:
    request = Request((target,), contract="zero", effort="smoke", dtypes=(dtype,))
    certificate = certify(request, minimise=False).certificate
    found = [f for f in failing(certificate) if f.declaration == declaration and diagnosis in f.diagnosis]
    assert found, [(f.declaration, f.diagnosis) for f in failing(certificate)]
    write(certificate, tmp_path / "c.json")
    result = CliRunner().invoke(
        main, ["repro", str(tmp_path / "c.json"), found[0].id, "--out", str(tmp_path / "report.py")]
    )
    assert result.exit_code == 0, result.output
    text = (tmp_path / "report.py").read_text()
    assert len(text.splitlines()) <= LONGEST, text
    first = text.splitlines()[0]
    assert first == f"# {target}, {dtype}: {found[0].diagnosis}"
    assert f"# Theorem {declaration}: " in text
    assert "hardmask" not in "".join(line for line in text.splitlines() if not line.startswith("#"))
    code, output = executed(text, tmp_path)
    assert code == 1, output
    assert "Traceback" not in output, output
    sentence = output.partition("The fault shows: ")[2]
    assert sentence, output
    assert ("nan" in sentence.lower()) == (back == "nan"), output
    assert f"numpy {version('numpy')}" in output
