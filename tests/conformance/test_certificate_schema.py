"""The published schema: fresh, valid, and of one mind with the records about real certificates and broken ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import fields
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate
from hardmask.conformance.exhaustive import Enumeration
from hardmask.conformance.verification.schema import certificate_schema, schema_text

PUBLISHED = Path(__file__).parents[2] / "docs" / "certificate.schema.json"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(certificate_schema())


@pytest.fixture(scope="module")
def failing(good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]) -> dict[str, Any]:
    def poor(scores: Any, mask: Any) -> Any:
        w = softmax_where(scores, mask).weights
        w[::3] = np.nan
        w[1::3] += np.asarray(1e-3, w.dtype)
        return w

    return fields(judge(good, changed("x.poor", forward=poor), dtypes=("float32",)).certificate)


def test_the_published_file_is_fresh_and_the_command_prints_it() -> None:
    assert PUBLISHED.read_text() == schema_text(), "Run: hardmask schema > docs/certificate.schema.json"
    result = CliRunner().invoke(main, ["schema"])
    assert (result.exit_code, result.output) == (0, schema_text())


def test_it_is_a_valid_schema_that_refuses_what_it_does_not_name() -> None:
    schema = certificate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"]
    assert schema["description"]
    for name, record in schema["$defs"].items():
        assert record["additionalProperties"] is False, name
        assert record["description"], name


@pytest.mark.parametrize("target", ["numpy.softmax-where", "numpy.attention"])
def test_what_is_written_is_valid(target: str, validator: jsonschema.Draft202012Validator) -> None:
    report = certify(Request((target,), effort="smoke", dtypes=("float32",)))
    assert report.certificate.findings
    validator.validate(fields(report.certificate))


def test_a_failing_certificate_is_valid(failing: dict[str, Any], validator: jsonschema.Draft202012Validator) -> None:
    assert {f["verdict"] for f in failing["findings"]} >= {"pass", "fail", "unsupported", "hypothesis-unmet"}
    validator.validate(failing)


def test_a_sweep_and_an_interrupted_run_are_valid(validator: jsonschema.Draft202012Validator) -> None:
    enumeration = Enumeration(("float16",), fraction=0.0001, parts=("pairs",))
    swept = certify(Request(("numpy.replace-min",), enumeration=enumeration)).certificate
    assert swept.sweeps
    validator.validate(fields(swept))

    def interrupt(event: object) -> None:
        raise KeyboardInterrupt

    cut = certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)), listen=interrupt).certificate
    assert not cut.complete
    validator.validate(fields(cut))


def first(content: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(f for f in content["findings"] if all(f[k] == v for k, v in wanted.items()))
    return found


MUTATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a field that is not there": lambda c: c.pop("not_shown"),
    "a field more": lambda c: c.update(extra=1),
    "a field more in a finding": lambda c: c["findings"][0].update(extra=1),
    "a field more in a witness": lambda c: first(c, verdict="fail")["witness"].update(extra=1),
    "another schema": lambda c: c.update(schema="hardmask-certificate/1"),
    "a digest that is none": lambda c: c.update(digest="sha256:abc"),
    "a digest by another algorithm": lambda c: c.update(digest="md5:" + "0" * 64),
    "an eighth verdict": lambda c: c["findings"][0].update(verdict="fine"),
    "a verdict in capitals": lambda c: c["subjects"][0].update(verdict="PASS"),
    "a negative count": lambda c: c["findings"][0].update(failed=-1),
    "a count as text": lambda c: c["findings"][0].update(checked="1"),
    "half a row": lambda c: c["findings"][0].update(checked=1.5),
    "a yes in the place of a number": lambda c: c.update(seed=True),
    "an id that is none": lambda c: c["findings"][0].update(id="../../x"),
    "a decimal in the place of a hexadecimal": lambda c: first(c, verdict="fail")["witness"].update(scores=["0.5"]),
    "a mask of numbers": lambda c: first(c, verdict="fail")["witness"].update(mask=[0, 1]),
    "a list in the place of an object": lambda c: c.update(environment=[]),
    "an object in the place of a list": lambda c: c.update(findings={}),
    "null in the place of text": lambda c: c["subjects"][0].update(contract=None),
    "complete as text": lambda c: c.update(complete="true"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_schema_and_records_refuse_the_same(
    name: str, failing: dict[str, Any], validator: jsonschema.Draft202012Validator
) -> None:
    changed = copy.deepcopy(failing)
    MUTATIONS[name](changed)
    assert changed != failing or name == "a yes in the place of a number"
    assert not validator.is_valid(changed)
    if name != "another schema":
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps(changed), type=Certificate)
