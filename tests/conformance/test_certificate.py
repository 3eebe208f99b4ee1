"""The certificate: its fields, its digest, and what becomes of one that was edited."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import SCHEMA, digest_of, fields, read, sealed, write
from hardmask.conformance.certification import Report
from hardmask.conformance.document import Certificate

TOP = {"schema", "hardmask", "environment", "seed", "complete", "digest", "subjects", "findings", "not_shown"}
SUBJECT = {"id", "adapter", "role", "path", "contract", "tier", "methods", "dtypes", "verdict"}
FINDING = {
    "subject", "declaration", "dtype", "family", "verdict", "diagnosis", "checked", "failed", "unmet", "tier", "ratio",
    "error", "budget", "enclosure", "witness", "minimal", "attention", "smallest", "id", "deviation",
}  # fmt: skip


def poor(scores: Any, mask: Any) -> Any:
    """Wrong in many ways: NaN in some rows, infinite in others, a leak in the rest."""
    w = softmax_where(scores, mask).weights
    w[::3] = np.nan
    w[1::3] = np.inf
    w[2::3] += np.asarray(1e-3, w.dtype)
    return w


@pytest.fixture(scope="module")
def report(good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]) -> Report:
    slightly = changed("x.off", forward=lambda s, m: (softmax_where(s, m).weights * 1.25).astype(s.dtype))
    return judge(good, changed("x.poor", forward=poor), slightly, dtypes=("float32", "bfloat16"))


@pytest.fixture
def path(report: Report, tmp_path: Path) -> Path:
    target = tmp_path / "certificate.json"
    write(report.certificate, target)
    return target


def test_it_has_the_published_fields(report: Report, path: Path) -> None:
    content = json.loads(path.read_text())
    assert content.keys() >= TOP
    assert all(s.keys() >= SUBJECT for s in content["subjects"])
    assert all(f.keys() == FINDING | {"elements"} for f in content["findings"])
    assert content == fields(report.certificate)
    assert content["schema"] == SCHEMA
    assert content["complete"] is True
    assert content["environment"]
    assert any("whole model" in sentence for sentence in content["not_shown"])
    names = {f["declaration"] for f in content["findings"]}
    assert names == set(content["declarations"])
    assert all(len(d["fingerprint"]) == 64 for d in content["declarations"].values())


def test_it_is_strict_json(path: Path) -> None:
    """No NaN, no infinity: also where errors and ratios are not numbers."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    def numbers(value: Any) -> Any:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for v in value:
                yield from numbers(v)
        elif isinstance(value, float):
            yield value

    content = json.loads(path.read_text(), parse_constant=refuse)
    assert all(map(math.isfinite, numbers(content)))
    verdicts = {f["verdict"] for f in content["findings"]}
    assert {"pass", "fail", "unsupported", "hypothesis-unmet"} <= verdicts
    assert any(f["verdict"] == "fail" and f["ratio"] is None for f in content["findings"])
    assert any(f["verdict"] == "fail" and f["ratio"] and f["ratio"] > 1 for f in content["findings"])


def test_the_ratio_is_null_where_the_budget_is_zero(report: Report) -> None:
    for f in report.certificate.findings:
        if f.verdict == "fail" and f.budget == 0.0:
            assert f.ratio is None


def test_the_digest_can_be_recomputed_with_the_standard_library(report: Report, path: Path) -> None:
    certificate = json.loads(path.read_text())
    claimed = certificate.pop("digest")
    del certificate["times"]
    covered = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    assert claimed == "sha256:" + hashlib.sha256(covered.encode()).hexdigest() == report.certificate.digest


def test_a_round_trip_changes_nothing(report: Report, path: Path) -> None:
    assert read(path) == report.certificate
    assert digest_of(read(path)) == report.certificate.digest
    assert not path.with_name(path.name + ".partial").exists()


def test_the_digest_covers_everything_but_the_times(report: Report) -> None:
    certificate = report.certificate
    assert certificate.digest.startswith("sha256:")
    assert len(certificate.digest) == len("sha256:") + 64
    assert sealed(msgspec.structs.replace(certificate, times={"seconds": 1e9})).digest == certificate.digest
    changes: dict[str, Any] = {"seed": 1, "complete": False, "hardmask": "9", "environment": {}}
    changes |= {"not_shown": [], "findings": [], "subjects": [], "declarations": {}, "request": {}}
    for name, value in changes.items():
        assert digest_of(msgspec.structs.replace(certificate, **{name: value})) != certificate.digest, name


def test_an_edited_file_is_refused(path: Path) -> None:
    content = json.loads(path.read_text())
    content["findings"][0]["verdict"] = "pass"
    content["findings"][0]["checked"] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="was changed after it was written: its digest does not match its content"):
        read(path)


def test_times_may_be_edited(path: Path) -> None:
    content = json.loads(path.read_text())
    content["times"] = {}
    path.write_text(json.dumps(content))
    assert read(path).times == {}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="is not a complete hardmask certificate") as problem:
        read(path)
    assert str(problem.value).count("\n") == 0


FOREIGN: dict[str, bytes] = {
    "a list": b"[1, 2]",
    "another object": b'{"name": "x"}',
    "no JSON": b"\x00\xff\xfe",
    "deep": b"[" * 100_000,
    "a wrong type": b'{"schema": 3}',
    "not a number": b'{"schema": NaN}',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused(name: str, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_bytes(FOREIGN[name])
    with pytest.raises(ValueError, match="is not a complete hardmask certificate"):
        read(target)


def test_another_schema_is_named(report: Report, path: Path) -> None:
    other = sealed(msgspec.structs.replace(report.certificate, schema="hardmask-certificate/99"))
    write(other, path)
    with pytest.raises(ValueError, match=f"'hardmask-certificate/99'; this version reads '{SCHEMA}'"):
        read(path)


def test_a_missing_file_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read: No such file or directory\."):
        read(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"cannot be read: Is a directory\."):
        read(tmp_path)


def test_writing_replaces_a_file_whole_or_not_at_all(report: Report, tmp_path: Path) -> None:
    target = tmp_path / "c.json"
    target.write_text("old")
    write(report.certificate, target)
    assert read(target).digest == report.certificate.digest
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        write(report.certificate, tmp_path / "no such folder" / "c.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json"]


def test_the_schema_can_be_published() -> None:
    """msgspec derives a JSON Schema from the records; every field of a finding is in it."""
    schema = msgspec.json.schema(Certificate)
    assert schema["$defs"]["Finding"]["properties"].keys() >= FINDING
