"""Failures of attention that two answers show, and calls that raise, as scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.replay import failing
from hardmask.conformance.repro import script

from .test_repro import executed

LONGEST = 40
"""Lines of a script beside those of the function itself."""

CORRECT = """
def weights(q, k, mask, scale):
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    s = np.where(mask, scale * (q.astype(np.float64) @ np.swapaxes(k, -1, -2)), -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.where(mask, np.exp(s - np.where(top > -np.inf, top, 0)), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


def forward(q, k, v, mask, scale):
    wide = np.repeat(v, q.shape[1] // v.shape[1], axis=1)
    output = weights(q, k, mask, scale) @ wide
    return output.astype(q.dtype)
"""

DERIVATIVES = """

def vjp(q, k, v, mask, scale, vector):
    heads = q.shape[1] // k.shape[1]
    a, b = (np.repeat(x, heads, axis=1).astype(np.float64) for x in (k, v))
    w = weights(q, k, mask, scale)
    g = vector @ np.swapaxes(b, -1, -2)
    ds = scale * w * (g - (w * g).sum(-1, keepdims=True))
    parts = ds @ a, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(w, -1, -2) @ vector
    shape = (len(q), k.shape[1], heads, k.shape[2], -1)
    parts = parts[0], *(x.reshape(shape).sum(2) if x.size else x[:, : k.shape[1]] for x in parts[1:])
    return tuple(x.astype(q.dtype) for x in parts)


def jvp(q, k, v, mask, scale, vector):
    heads = q.shape[1] // k.shape[1]
    a, b, r, t = (np.repeat(x, heads, axis=1).astype(np.float64) for x in (k, v, *vector[1:]))
    w = weights(q, k, mask, scale)
    ds = scale * (vector[0] @ np.swapaxes(a, -1, -2) + q @ np.swapaxes(r, -1, -2))
    return ((w * (ds - (w * ds).sum(-1, keepdims=True))) @ b + w @ t).astype(q.dtype)
"""

FILE = '''
import numpy as np

from hardmask.adapters.attention import Attention
from hardmask.adapters.recipe import Recipe

SOURCE = """{source}"""
OTHER = """{other}"""


def made(id, source):
    space = {{"np": np}}
    exec(source, space)
    recipe = Recipe("numpy", source)
    methods = {{name: space.get(name) for name in ("vjp", "jvp")}}
    return Attention(id, space["forward"], **methods, recipe=recipe, group="mine.paths", dtypes=("float32",))


paths = [made("mine.first", SOURCE), made("mine.second", OTHER)]
'''

WRONG = {
    "depends on its company": ("1 + 0.125 * (q.shape[0] * q.shape[1] > 1)", "extension:attention-batch-invariance"),
    "depends on padding": ("1 + 0.125 * (k.shape[2] % 2)", "extension:attention-padding-invariance"),
    "depends on later queries": ("1 + 0.125 * q.shape[2]", "extension:attention-prefix-invariance"),
    "unlike the other path": ("1.5", "extension:path-agreement"),
}


def shown(source: str, declaration: str, folder: Path, says: str = "") -> None:
    """The finding of the first subject has a script that shows the fault, and none of a correct function."""
    (folder / "mine.py").write_text(FILE.format(source=source, other=CORRECT))
    request = Request((f"{folder}/mine.py:paths",), contract="zero", effort="smoke", dtypes=("float32",))
    certificate = certify(request).certificate
    found = [f for f in failing(certificate) if f.declaration.endswith(declaration) and f.subject == "mine.first"]
    assert found, sorted({f"{f.declaration}: {f.diagnosis}" for f in failing(certificate)})
    text = script(certificate, found[0])
    own = len(source.strip().splitlines()) + (len(CORRECT.strip().splitlines()) if "def other_path" in text else 0)
    assert len(text.splitlines()) - own <= LONGEST
    code, output = executed(text, folder)
    assert code == 1, output
    assert f"The fault shows: {says}" in output
    assert "Traceback" not in output
    right = CORRECT + (DERIVATIVES if "def vjp" in source else "")
    written = source.strip().replace("\n\n\n", "\n\n")  # as a script has it
    assert written in text
    code, output = executed(text.replace(written, right.strip()), folder)
    assert code == 0, output
    assert "The fault does not show." in output


@pytest.mark.parametrize("name", WRONG)
def test_two_answers_that_should_be_one_show_without_hardmask(name: str, tmp_path: Path) -> None:
    factor, declaration = WRONG[name]
    shown(CORRECT.replace("return output", f"output = output * ({factor})\n    return output"), declaration, tmp_path)


def test_a_jvp_that_is_not_the_adjoint_shows_without_hardmask(tmp_path: Path) -> None:
    wrong = CORRECT + DERIVATIVES.replace("+ w @ t)", "+ 2 * (w @ t))")
    shown(wrong, "jvp_backward_pairing", tmp_path, "not adjoint")


def test_an_attention_that_raises_shows_without_hardmask(tmp_path: Path) -> None:
    refusing = CORRECT.replace("    k = ", '    if not k.shape[2]:\n        raise ValueError("no keys")\n    k = ', 1)
    shown(refusing, "extension:attention-empty-row", tmp_path, "it raised ValueError: no keys")


def test_a_problem_that_is_too_large_for_its_certificate_is_shrunk(tmp_path: Path) -> None:
    wrong = CORRECT.replace("return output", "output = 1.5 * output\n    return output")
    (tmp_path / "mine.py").write_text(FILE.format(source=wrong, other=CORRECT))
    request = Request((f"{tmp_path}/mine.py:paths",), contract="zero", effort="smoke", dtypes=("float32",))
    certificate = certify(request).certificate
    large = [f for f in failing(certificate) if f.smallest is None and f.attention is not None]
    large = [f for f in large if f.attention is not None and f.attention.q is None and f.attention.quantity == "output"]
    assert large
    code, output = executed(script(certificate, large[0]), tmp_path)
    assert code == 1, output
    assert "The fault shows: " in output
