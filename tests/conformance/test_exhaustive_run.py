"""Sweeps on several processes, interrupted and resumed; their options, checkpoints and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from hardmask.conformance.certificate import read
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.exhaustive import PARTS, Enumeration, PieceDone
from hardmask.conformance.exhaustive.checkpoint import CheckpointError

FRACTION = 0.002
"""Two pieces for each sweep."""


def run(targets: tuple[str, ...] = ("numpy.fill-inf",), **fields: Any) -> Report:
    listen = fields.pop("listen", lambda event: None)
    seed = fields.pop("seed", 0)
    enumeration = Enumeration(("float16",), **{"fraction": FRACTION, "parts": ("pairs", "empty"), **fields})
    return certify(Request(targets, seed=seed, enumeration=enumeration), listen=listen)


@pytest.fixture(scope="module")
def whole() -> Report:
    return run()


class Interrupt:
    """A listener that interrupts the run at its second piece."""

    heard = 0

    def __call__(self, event: Any) -> None:
        assert isinstance(event, PieceDone)
        self.heard += 1
        if self.heard == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_sweep_goes_on_from_its_checkpoint(jobs: int, whole: Report, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "state.json")
    cut = run(checkpoint=checkpoint, jobs=jobs, listen=Interrupt())
    assert (cut.exit_code, cut.certificate.complete) == (1, False)
    assert cut.reason.startswith("Incomplete. The run was interrupted")
    assert "goes on from the checkpoint" in cut.reason
    begun = json.loads(Path(checkpoint).read_text())["sweeps"]
    assert sum(progress["pieces"] for progress in begun.values()) == 2
    assert not list(tmp_path.glob("*.partial"))

    events: list[PieceDone] = []
    rest = run(checkpoint=checkpoint, jobs=jobs, listen=events.append)
    assert events[0].resumed > 0
    assert len(events) == 2
    assert events[-1].rows == events[-1].total == sum(s.rows for s in rest.certificate.sweeps)
    assert rest.exit_code == 0
    assert rest.certificate.sweeps == whole.certificate.sweeps
    assert rest.certificate.digest == whole.certificate.digest

    again = run(checkpoint=checkpoint, listen=Interrupt())  # nothing is left to do, so nothing is interrupted
    assert again.certificate.digest == whole.certificate.digest


def test_processes_change_nothing(whole: Report) -> None:
    assert run(jobs=2).certificate.digest == whole.certificate.digest


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, "seed"),
        ({"fraction": 0.001}, "fraction"),
        ({"parts": ("pairs",)}, "part"),
        ({"targets": ("numpy.scipy-softmax",)}, "target"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(changed: dict[str, Any], named: str, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "state.json")
    run(checkpoint=checkpoint, listen=Interrupt())
    with pytest.raises(CheckpointError, match=f"belongs to another run: its {named} differs"):
        run(checkpoint=checkpoint, **changed)


def test_a_checkpoint_of_other_versions_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    run(checkpoint=str(file), listen=Interrupt())
    content = json.loads(file.read_text())
    for name, value in (("versions", {"numpy": "0"}), ("hardmask", {})):
        file.write_text(json.dumps({**content, "identity": {**content["identity"], name: value}}))
        with pytest.raises(CheckpointError, match=f"its {name} differs"):
            run(checkpoint=str(file))
    file.write_text(json.dumps({**content, "format": "hardmask-checkpoint/0"}))
    with pytest.raises(CheckpointError, match="follows the format 'hardmask-checkpoint/0'"):
        run(checkpoint=str(file))


def test_a_broken_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    run(checkpoint=str(file), listen=Interrupt())
    content = file.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"[1, 2]", b'{"a": 1}', b"\xff\x00"):
        file.write_bytes(broken)
        with pytest.raises(CheckpointError, match="is not a complete checkpoint of hardmask"):
            run(checkpoint=str(file))
    with pytest.raises(CheckpointError, match=r"cannot be written to '.*state\.json'"):
        run(checkpoint=str(tmp_path / "no such folder" / "state.json"))


def test_the_certificate_says_what_was_enumerated(whole: Report, tmp_path: Path) -> None:
    certificate = whole.certificate
    assert certificate.request["exhaustive"] == {
        "dtypes": ["float16"],
        "fraction": FRACTION,
        "parts": ["pairs", "empty"],
    }
    assert certificate.request["effort"] is None
    assert set(certificate.times["sweeps"]) == {f"numpy.fill-inf float16 {s.kind}" for s in certificate.sweeps}
    pairs = certificate.sweeps[0]
    assert (pairs.first_scores, pairs.sampled, pairs.of) == (127, 127, 63488)
    assert (pairs.rows, pairs.outputs) == (127 * 63488, 2 * 127 * 63488)
    assert pairs.sample == f"127 of 63,488 first scores, seed 0, sample sha256 {pairs.sha256}"
    assert pairs.not_correctly_rounded is not None
    assert pairs.share_not_correctly_rounded == sum(pairs.not_correctly_rounded) / pairs.outputs
    assert any("Only what the sweeps name was enumerated" in text for text in certificate.not_shown)
    assert not any("sampled, not enumerated" in text for text in certificate.not_shown)


def test_the_digest_covers_the_sweeps(whole: Report, tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_bytes(msgspec.json.encode(whole.certificate))
    assert read(file) == whole.certificate
    file.write_bytes(file.read_bytes().replace(b'"violations":0', b'"violations":1', 1))
    with pytest.raises(ValueError, match="digest does not match"):
        read(file)


def test_an_ordinary_certification_has_no_sweeps() -> None:
    report = certify(Request(("numpy.fill-inf",), effort="smoke", dtypes=("float16",)))
    assert report.certificate.sweeps == []
    assert report.certificate.request["exhaustive"] is None
    assert "sweeps" not in report.certificate.times


COMMAND = ("certify", "numpy.fill-inf", "--exhaustive", "float16", "--fraction", "0.0001", "--jobs", "1")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


def test_the_command_shows_the_sweeps_and_writes_them(tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    result = invoke(*COMMAND, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "float16: 6 of 63,488 first scores, seed 0, sample sha256 " in result.output
    assert "Certified, on the rows that were enumerated alone: every subject keeps what it declares." in result.output
    lines = [line.split() for line in result.output.splitlines() if line.startswith("numpy.fill-inf")]
    assert [line[2:4] for line in lines][:2] == [["pairs", "(1,1)"], ["pairs", "(1,0)"]]
    assert "getScalar" not in result.output  # no table of declarations without sampled rows
    assert {s.kind for s in read(out).sweeps} == {
        *("pairs (1,1)", "pairs (1,0)", "pairs (0,1)", "pairs (0,0)", "length 1", "length 3")
    }


def test_an_effort_adds_the_ordinary_run() -> None:
    result = invoke(*COMMAND, "--part", "pairs", "--effort", "smoke", "--dtype", "float16")
    assert result.exit_code == 0, result.output
    assert "spec_eq_weights" in result.output
    assert "pairs (1,1)" in result.output


def test_a_violation_is_shown_with_its_row(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "def mine(scores, mask):\n"
        "    filled = np.where(mask, scores.astype(np.float32), -1e9)\n"
        "    e = np.exp(filled - filled.max(axis=-1, keepdims=True))\n"
        "    return (e / e.sum(axis=-1, keepdims=True)).astype(scores.dtype)\n"
        "from hardmask.adapters.subject import Subject\n"
        "mine = Subject('mine', mine, dtypes=('float16',))\n"
    )
    result = invoke("certify", f"{file}:mine", "--exhaustive", "float16", "--fraction", "0.00005", "--jobs", "1")
    assert result.exit_code == 1
    assert "mine · extension:empty-row · float16 · exhaustive pairs (0,0)" in result.output
    assert "diagnosis  uniform" in result.output
    assert "Not certified: mine." in result.output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--exhaustive", "float32"], "'float32' cannot be enumerated: only the 16-bit formats can"),
        (["--exhaustive", "float16", "--fraction", "0"], "A fraction is above 0 and at most 1; 0 is not."),
        (["--exhaustive", "float16", "--fraction", "nan"], "A fraction is above 0 and at most 1; nan is not."),
        (["--exhaustive", "float16", "--part", "most"], f"Choose from: {', '.join(PARTS)}."),
        (["--fraction", "0.5"], "--fraction belongs to a sweep"),
        (["--part", "pairs"], "--part belongs to a sweep"),
        (["--checkpoint", "x"], "--checkpoint belongs to a sweep"),
    ],
)
def test_a_wrong_option_is_a_sentence(options: list[str], sentence: str) -> None:
    result = invoke("certify", "numpy.fill-inf", *options)
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_foreign_checkpoint_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("{}")
    result = invoke(*COMMAND, "--checkpoint", str(file))
    assert result.exit_code == 2
    assert "is not a complete checkpoint of hardmask" in result.output
    assert "delete this one to start anew" in result.output


def test_a_certificate_says_what_was_sampled_beside_a_sweep() -> None:
    request = Request(
        ("numpy.fill-inf",),
        dtypes=("float16",),
        effort="smoke",
        enumeration=Enumeration(("float16",), fraction=1e-4, parts=("short",), alone=False),
    )
    sentences = certify(request).certificate.not_shown
    assert any("but for those that the sweeps name, were sampled, not enumerated" in text for text in sentences)
    assert not any("{" in text for text in sentences)


def test_a_subject_without_the_enumerated_dtype_is_not_certified(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from hardmask.adapters.numpy_rows import softmax_where\n"
        "from hardmask.adapters.subject import Subject\n"
        "mine = Subject('mine', softmax_where, dtypes=('float32',))\n"
    )
    options = ("--effort", "smoke", "--exhaustive", "float16", "--fraction", "0.0001", "--jobs", "1")
    result = invoke("certify", f"{file}:mine", *options)
    assert result.exit_code == 1
    sentence = "Not certified: no row of mine was enumerated in float16; name subjects that offer it."
    assert sentence in " ".join(result.output.split())
