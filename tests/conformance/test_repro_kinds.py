"""Every kind of failure as a script: it shows the fault of a wrong function, and none of a correct one in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.document import Certificate
from hardmask.conformance.finding import Finding
from hardmask.conformance.replay import failing
from hardmask.conformance.repro import script

from .test_repro import executed

LONGEST = 40
"""Lines of a script beside those of the function itself."""

FORWARD = """
def forward(scores, mask):
    s = np.where(mask, scores, -np.inf)
    top = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
    e = np.where(mask, np.exp(s - np.where(top > -np.inf, top, 0)), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)
"""

PULL = """
def {name}(scores, mask, vector):
    w, v = forward(scores, mask), np.where(mask, vector, 0)
    return {value}
"""

RIGHT = "w * (v - (w * v).sum(-1, keepdims=True))"


def pull(name: str, value: str = RIGHT) -> str:
    return PULL.format(name=name, value=value)


CORRECT = FORWARD + pull("vjp") + pull("jvp")

REJECTING = FORWARD.replace("    s =", '    if not mask.any(-1).all():\n        raise ValueError("no key")\n    s =', 1)
UNGUARDED = FORWARD.replace("out=np.zeros_like(e), where=total != 0)", "out=np.full_like(e, np.nan), where=total != 0)")
FALLBACK = FORWARD.replace(
    "    s =", "    mask = mask | (~mask.any(-1, keepdims=True) & (np.arange(mask.shape[-1]) == 0))\n    s =", 1
)

FLAGGED = FORWARD.replace("!= 0)\n", "!= 0), mask.any(-1)\n")

FILE = '''
import numpy as np

from hardmask.adapters.recipe import Recipe
from hardmask.adapters.subject import Answer, Subject

SOURCE = """{source}"""

space = {{"np": np}}
exec(SOURCE, space)
made = Subject(
    "mine.made", forward={forward}, vjp=space.get("vjp"), jvp=space.get("jvp"),
    recipe=Recipe("numpy", SOURCE, several={several}),
    {declared}
)
'''


@dataclass(frozen=True)
class Wrong:
    """A function with one fault: its source, what its subject declares, and where the fault has to be seen."""

    source: str
    declaration: str
    note: str = ""
    says: str = ""
    correct: str = CORRECT
    contract: str | None = "zero"
    require: tuple[str, ...] = ()
    declared: str = ""
    forward: str = 'space["forward"]'
    effort: str = "smoke"


WRONG = {
    "not shift-invariant": Wrong(
        FORWARD.replace("np.where(top > -np.inf, top, 0)", "0") + pull("vjp"),
        "extension:shift-invariance",
        effort="default",
    ),
    "not permutation-equivariant": Wrong(
        FORWARD.replace("    total =", "    e[..., :1] *= 1.5\n    total ="), "extension:permutation-equivariance"
    ),
    "reads blocked scores": Wrong(
        FORWARD.replace("np.exp(s", "np.exp(0 * scores.sum(-1, keepdims=True) + s"), "extension:score-non-interference"
    ),
    "depends on blocked tails": Wrong(
        FORWARD.replace("where=total != 0)", "where=total != 0) * (1 - 0.01 * (scores.shape[-1] > 16))"),
        "extension:truncation",
        effort="default",
    ),
    "one maximum for all rows": Wrong(FORWARD.replace("axis=-1, keepdims=True, initial", "initial"), "row-sum"),
    "a row knows its neighbours": Wrong(
        FORWARD.replace(
            "    total =",
            "    e = e * (1 + 0.125 * (np.arange(e.shape[-1]) == 0) * (len(e) > 1)).astype(e.dtype)\n    total =",
        ),
        "extension:batch-invariance",
        says="wrong weights",
    ),
    "VJP is not symmetric": Wrong(FORWARD + pull("vjp", RIGHT + " + 0.25 * w * np.roll(v, 1, -1)"), "inner_derivative"),
    "JVP is not the adjoint of the VJP": Wrong(
        FORWARD + pull("vjp") + pull("jvp", "1.5 * " + RIGHT), "backward_eq_adjoint_fderiv"
    ),
    "VJP of rounded weights": Wrong(
        FORWARD + pull("vjp", RIGHT.replace("w *", "w.astype(np.float16).astype(w.dtype) *")),
        "backward_eq_derivative",
        note="given",
        declared='promises=frozenset({"vjp-from-output"}),',
    ),
    "raises on an empty row": Wrong(REJECTING, "empty-row", says="it raised ValueError: no key"),
    "returns another shape": Wrong(
        FORWARD.replace("return np.divide(", "return np.divide(").replace("!= 0)", "!= 0)[..., :0]"), "row-sum"
    ),
    "NaN at a blocked cotangent": Wrong(
        CORRECT.replace("np.where(mask, vector, 0)", "vector"), "extension:isolation", require=("isolation",)
    ),
    "swallows a NaN": Wrong(
        FORWARD.replace("return np.divide(", "return np.nan_to_num(np.divide(").replace("!= 0)", "!= 0))"),
        "extension:allowed-nan-visible",
        require=("allowed-nan-visible",),
    ),
    "a flag of the wrong row": Wrong(
        FLAGGED.replace("mask.any(-1)", "mask.any(-1) & (mask.shape[-1] > 1)"),
        "extension:empty-row",
        note="valid",
        contract="zero+valid",
        says="valid is False on a row with 1 allowed keys",
        correct=FLAGGED,
        forward='lambda s, m: Answer(*space["forward"](s, m))',
    ),
    "not rejected": Wrong(
        FORWARD, "empty-row", contract="reject", says="a row without an allowed key was not refused", correct=REJECTING
    ),
    "not NaN": Wrong(
        FORWARD, "empty-row", contract="nan", says="a row without an allowed key should be NaN", correct=UNGUARDED
    ),
    "no fallback": Wrong(FORWARD, "empty-row", contract="fallback(0)", correct=FALLBACK),
}


def certificate_of(wrong: Wrong, folder: Path) -> Certificate:
    (folder / "mine.py").write_text(
        FILE.format(
            source=wrong.source, declared=wrong.declared, forward=wrong.forward, several="Answer" in wrong.forward
        )
    )
    request = Request(
        (f"{folder}/mine.py:made",),
        contract=wrong.contract,
        effort=wrong.effort,
        dtypes=("float32",),
        require=wrong.require,
    )
    return certify(request).certificate


def chosen(certificate: Certificate, wrong: Wrong) -> list[Finding]:
    """A finding with a smallest row and one without, of the declaration at stake; the first of each kind of witness."""
    found: dict[tuple[bool, str], Finding] = {}
    for f in failing(certificate):
        w = f.minimal or f.witness
        note = "" if w is None else w.note
        if f.declaration.endswith(wrong.declaration) and wrong.note in note:
            found.setdefault((f.minimal is None, note), f)
    return list(found.values())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_shows_its_fault_and_a_correct_one_does_not(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    certificate = certificate_of(wrong, tmp_path)
    findings = chosen(certificate, wrong)
    assert findings, [f"{f.declaration} {f.diagnosis}" for f in failing(certificate)]
    for f in findings:
        text = script(certificate, f)
        assert len(text.splitlines()) - len(wrong.source.strip().splitlines()) <= LONGEST
        code, output = executed(text, tmp_path)
        assert code == 1, f"{f.family}: {output}"
        assert f"The fault shows: {wrong.says}" in output
        assert "Traceback" not in output
        assert wrong.source.strip() in text
        code, output = executed(text.replace(wrong.source.strip(), wrong.correct.strip()), tmp_path)
        assert code == 0, f"{f.family}: {output}"
        assert "The fault does not show." in output
