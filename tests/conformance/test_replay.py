"""``hardmask replay``: one case of a certificate again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.attention import Attention
from hardmask.conformance.certificate import read, sealed, write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate
from hardmask.conformance.replay import again, chosen, failing, problems, replay

FIXED = """
import numpy as np
from hardmask.adapters.numpy_rows import softmax_where

def softmax(scores, mask):
    return softmax_where(scores, mask).weights
"""

NAN = """
import numpy as np

def softmax(scores, mask):
    filled = np.where(mask, scores, -np.inf)
    e = np.exp(filled - filled.max(axis=-1, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=-1, keepdims=True)
"""

LAST_KEY = """
import numpy as np
from hardmask.adapters.numpy_rows import softmax_where

def softmax(scores, mask):
    found = softmax_where(scores, mask).weights
    found[~mask.any(axis=-1)] = 3.0
    return found
"""

RAISES = """
import numpy as np
from hardmask.adapters.numpy_rows import softmax_where

def softmax(scores, mask):
    if not mask.any(axis=-1).all():
        raise ValueError("an empty row")
    return softmax_where(scores, mask).weights
"""

DIES = """
import os, signal

def softmax(scores, mask):
    os.kill(os.getpid(), signal.SIGSEGV)
"""

COMPANY = """
import numpy as np
from hardmask.adapters.numpy_rows import softmax_where

def softmax(scores, mask):
    found = softmax_where(scores, mask).weights
    if len(scores) > 64 and len(scores[0]):
        found[7] = 0.0
    return found
"""


@pytest.fixture(scope="module")
def numpy_certificate() -> Certificate:
    targets = ("numpy.unguarded-inf", "numpy.additive-1e9", "numpy.where-after-additive-inf", "numpy.attention[-inf]")
    return certify(Request(targets, contract="zero", effort="smoke", dtypes=("float32",))).certificate


def test_every_failure_fails_again_with_the_same_bits(numpy_certificate: Certificate) -> None:
    found = {f.id: replay(numpy_certificate, f) for f in failing(numpy_certificate)}
    assert len(found) > 50
    assert {a.status for a in found.values()} == {"still failing"}
    assert {a.put.partition(" ")[0] for a in found.values()} == {"the", "batch", "problem"}
    assert all(a.exit_code == 1 for a in found.values())


def test_what_passed_passes_again(numpy_certificate: Certificate) -> None:
    passed = [f for f in numpy_certificate.findings if f.verdict == "pass" and (f.witness or f.attention)]
    assert passed
    assert {replay(numpy_certificate, f).status for f in passed[::7]} == {"passes"}


def written(folder: Path, source: str) -> str:
    """The target of a softmax that a file defines."""
    (folder / "mine.py").write_text(source)
    return f"{folder}/mine.py:softmax"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["replay", *arguments], catch_exceptions=False)
    return result.exit_code, result.output


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    """A certificate of a function that is another one by now."""
    target = written(tmp_path, NAN)
    write(certify(Request((target,), effort="smoke", dtypes=("float32",))).certificate, tmp_path / "c.json")
    return tmp_path


def test_a_mended_function_is_fixed(mended: Path) -> None:
    certificate = read(mended / "c.json")
    first = failing(certificate)[0]
    code, text = run(str(mended / "c.json"), first.id[:8])
    assert code == 1
    assert text.startswith(f"{first.id}: still failing.\n")
    assert "diagnosis  NaN" in text
    written(mended, FIXED)
    code, text = run(str(mended / "c.json"), first.id)
    assert (code, text.splitlines()[0]) == (0, f"{first.id}: fixed. It does not fail any more: pass.")
    code, text = run(str(mended / "c.json"), "--all")
    assert code == 0
    assert text.count(" fixed ") == len(failing(certificate))


def test_another_fault_is_different(mended: Path) -> None:
    written(mended, LAST_KEY)
    first = next(f for f in failing(read(mended / "c.json")) if f.declaration == "extension:empty-row")
    code, text = run(str(mended / "c.json"), first.id)
    assert code == 1
    assert f"{first.id}: different. The diagnosis was 'NaN', and is 'not zero'." in text


def test_other_bits_with_the_same_verdict_are_different(mended: Path) -> None:
    written(mended, LAST_KEY)
    write(
        certify(Request((f"{mended}/mine.py:softmax",), effort="smoke", dtypes=("float32",))).certificate,
        mended / "c.json",
    )
    written(mended, LAST_KEY.replace("3.0", "4.0"))
    first = next(f for f in failing(read(mended / "c.json")) if f.minimal is not None)
    code, text = run(str(mended / "c.json"), first.id)
    assert code == 1
    assert "different. The same verdict with other bits: entry 0 of the weights was 3.0, and is 4.0." in text


def test_a_call_that_raised_is_made_again(tmp_path: Path) -> None:
    target = written(tmp_path, RAISES)
    certificate = certify(Request((target,), effort="smoke", dtypes=("float32",))).certificate
    errors = [f for f in failing(certificate) if f.verdict == "error"]
    assert errors
    assert {replay(certificate, f).status for f in errors} == {"still failing"}
    written(tmp_path, FIXED)
    assert {replay(certificate, f).status for f in errors} == {"fixed"}


def test_a_backend_that_dies_takes_no_replay_with_it(tmp_path: Path) -> None:
    target = written(tmp_path, DIES)
    request = Request((target,), effort="smoke", dtypes=("float32",), in_process=False)
    write(certify(request).certificate, tmp_path / "c.json")
    first = failing(read(tmp_path / "c.json"))[0]
    code, text = run(str(tmp_path / "c.json"), first.id)
    assert code == 1
    assert "SIGSEGV" in text
    written(tmp_path, FIXED)
    code, text = run(str(tmp_path / "c.json"), first.id, "--call-timeout", "60")
    assert (code, text.splitlines()[0]) == (0, f"{first.id}: fixed. It does not fail any more: pass.")


def test_where_a_subject_runs_is_checked_first(mended: Path) -> None:
    code, text = run(str(mended / "c.json"), "--all", "--in-process", "--python", __import__("sys").executable)
    assert (code, text.count("\n")) == (2, 1)
    assert "Another interpreter runs in a process of its own" in text


def test_a_row_that_fails_only_in_its_batch_gets_its_batch(tmp_path: Path) -> None:
    target = written(tmp_path, COMPANY)
    certificate = certify(Request((target,), effort="smoke", dtypes=("float32",))).certificate
    found = failing(certificate)
    assert found
    assert all(replay(certificate, f).status == "still failing" for f in found)
    assert any(replay(certificate, f).put.startswith("batch ") for f in found)
    written(tmp_path, FIXED)
    assert {replay(certificate, f).status for f in found} == {"fixed"}


def test_paths_are_compared_with_their_group_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from hardmask.adapters.numpy_attention import attention

    def off(*arguments: object) -> object:
        return attention(*arguments).output + np.float32(0.25)  # type: ignore[arg-type, no-any-return, union-attr]

    limits = {"no queries": "It is shorter so."}
    paths = [
        Attention("mine.plain", attention, group="mine", limits=limits),
        Attention("mine.off", off, group="mine", limits=limits),
    ]
    certificate = certify(Request(("mine",), effort="smoke", dtypes=("float32",)), subjects=paths).certificate
    by_id = {s.id: s for s in paths}
    monkeypatch.setattr(again, "subject_of", lambda certificate, finding, targets, workers: by_id[finding.subject])
    monkeypatch.setattr(problems, "company", lambda certificate, subject, targets, workers: paths)
    apart = [f for f in failing(certificate) if f.diagnosis == "unlike mine.plain"]
    assert apart
    assert {replay(certificate, f).status for f in apart} == {"still failing"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["zzz"], "No finding of the certificate has an id that begins with 'zzz'."),
        ([""], "No finding of the certificate has an id that begins with ''."),
        (["\x1b[31m"], "begins with '[31m'"),
    ],
)
def test_an_id_that_is_none_is_a_sentence(
    numpy_certificate: Certificate, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    write(numpy_certificate, tmp_path / "c.json")
    code, text = run(str(tmp_path / "c.json"), *arguments)
    assert code == 2
    assert sentence in text


def test_a_prefix_of_several_names_them(numpy_certificate: Certificate) -> None:
    digits = {f.id[0] for f in numpy_certificate.findings}
    with pytest.raises(ValueError, match=r"begins the ids of \d+ findings"):
        chosen(numpy_certificate, min(digits))


def test_without_an_id_the_failures_are_listed(numpy_certificate: Certificate, tmp_path: Path) -> None:
    write(numpy_certificate, tmp_path / "c.json")
    code, text = run(str(tmp_path / "c.json"))
    assert code == 0
    assert f"{len(failing(numpy_certificate))} findings failed" in text
    listed = [line.split()[0] for line in text.splitlines() if " · " in line]
    assert set(listed) <= {f.id for f in failing(numpy_certificate)}


def test_what_was_not_judged_cannot_be_run_again(numpy_certificate: Certificate) -> None:
    f = next(f for f in numpy_certificate.findings if f.verdict == "unsupported")
    with pytest.raises(ValueError, match="is 'unsupported': nothing was judged"):
        replay(numpy_certificate, f)


def test_a_subject_that_is_gone_is_a_sentence(mended: Path) -> None:
    (mended / "mine.py").unlink()
    code, text = run(str(mended / "c.json"), failing(read(mended / "c.json"))[0].id)
    assert code == 2
    assert "mine.py" in text
    assert "Traceback" not in text


def test_a_witness_that_lies_about_its_sizes_is_a_sentence(numpy_certificate: Certificate) -> None:
    f = next(f for f in failing(numpy_certificate) if f.minimal is not None and f.minimal.keys)
    assert f.minimal is not None
    lying = msgspec.structs.replace(f, minimal=msgspec.structs.replace(f.minimal, keys=f.minimal.keys + 1))
    with pytest.raises(ValueError, match="not as many scores as keys"):
        replay(numpy_certificate, lying)
    f = next(f for f in failing(numpy_certificate) if f.smallest is not None)
    assert f.smallest is not None
    lying = msgspec.structs.replace(f, smallest=msgspec.structs.replace(f.smallest, sizes=[9] * 7))
    with pytest.raises(ValueError, match="do not have the sizes"):
        replay(numpy_certificate, lying)


def test_a_changed_certificate_is_refused(numpy_certificate: Certificate, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    write(sealed(numpy_certificate), file)
    content = json.loads(file.read_text())
    content["seed"] = 5
    file.write_text(json.dumps(content))
    code, text = run(str(file))
    assert code == 2
    assert "was changed after it was written" in text
