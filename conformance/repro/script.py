"""Write the script of one failure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence

from ...adapters.attention import Attention
from ...adapters.recipe import Which
from ...spec.contracts import contract
from ..document import Certificate
from ..finding import Finding
from ..replay.choice import subject_of
from ..text import printable
from ..verification.asked import asked_of
from ..verification.claims import key_of
from .own import recipe_from_target
from .problem import of_problem
from .related import of_related
from .row import of_row
from .told import Told

WIDTH = 116

PACKAGES = ("numpy", "scipy", "torch", "jax", "flax", "onnx", "onnxruntime")
"""What a script may import; it prints the versions of those that it does."""


def script(certificate: Certificate, finding: Finding) -> str:
    """The source of a script that calls the entry point as the subject does, and ends with exit code 1 and a sentence
    where the fault shows, and with 0 where it does not.

    Raises ValueError, one sentence, for a finding that did not fail, or whose failure no short script shows.
    """
    found = asked_of(certificate)
    if found is None:
        raise ValueError("The certificate's request is none that this version can have carried out.")
    if finding.verdict not in ("fail", "error"):
        raise ValueError(f"Finding {finding.id} is '{finding.verdict}': only a failure can be shown by a script.")
    asked, request = found
    subject = subject_of(certificate, finding, asked.targets)
    recipe = subject.recipe or recipe_from_target(subject, asked.targets)
    if recipe is None:
        raise ValueError(
            f"'{subject.id}' declares no recipe: nothing says how to call it without hardmask. "
            f"Run 'hardmask replay CERTIFICATE {finding.id}' instead."
        )
    rule = contract(request.policy.contract_of(subject))
    told = Told(certificate, finding, recipe, rule, request.policy, asked)
    if isinstance(subject, Attention):
        related = of_related(told, subject, key_of(finding.declaration), finding.smallest or finding.attention)
        lines, methods = of_problem(told, subject) if related is None else related
    else:
        lines, methods = of_row(told, subject)
    imports, lines = _imports(lines)
    return _head(certificate, finding) + imports + _calling(told, methods) + "\n".join(lines) + "\n"


def _imports(lines: list[str]) -> tuple[str, list[str]]:
    """What a script imports of the standard library goes before everything else."""
    found = [line for line in lines if line in ("import math", "from fractions import Fraction")]
    rest = [line for line in lines if line not in found]
    while rest and not rest[0]:
        rest = rest[1:]
    return "".join(f"{line}\n" for line in found), rest


def _calling(told: Told, methods: Sequence[Which]) -> str:
    text = told.recipe.script(*methods)
    if told.recipe.library == "numpy" and told.finding.dtype == "bfloat16":
        text = f"import ml_dtypes\n{text}"
    short = re.sub(r"\n{3,}", "\n\n", text)  # one blank line, not two: a screen should hold the whole script
    short = short.replace("\n\nfrom ", "\nfrom ").replace("\n\nimport ", "\nimport ")
    return f"from importlib.metadata import version\n{short}\n{_printed(text)}\n"


def _printed(text: str) -> str:
    """The line that prints the versions of what a source imports."""
    used = [p for p in PACKAGES if re.search(rf"^(import|from) {p}\b", text, re.MULTILINE)]
    return f'print(*(f"{{name}} {{version(name)}}" for name in {json.dumps(used)}))'


def _head(certificate: Certificate, f: Finding) -> str:
    entry = certificate.declarations.get(f.declaration, {})
    lines = [f"{printable(f.subject)}, {f.dtype}: {printable(f.diagnosis)}"]
    lines.append(f"Theorem {printable(f.declaration)}: {printable(entry.get('statement', ''))}")
    lines.append(f"In words: {printable(entry.get('plain', ''))}")
    lines.append(
        f"Found by hardmask {printable(certificate.hardmask, 40)}, finding {f.id}. {_versions(certificate)}".rstrip()
    )
    wrapped = [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ")]
    return "".join(f"# {line}\n" for line in wrapped)


def _versions(certificate: Certificate) -> str:
    found = certificate.environment.get("frameworks")
    if not isinstance(found, dict):
        return ""
    return ", ".join(f"{printable(str(k), 40)} {printable(str(v), 40)}" for k, v in sorted(found.items())) + "."
