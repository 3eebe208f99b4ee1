"""Subjects to be judged, good and bad, and a short way to judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.finding import Finding


def weights(scores: Any, mask: Any) -> Any:
    """A correct masked softmax without a ``valid`` flag."""
    return softmax_where(scores, mask).weights


GOOD = Subject(
    "test.good",
    weights,
    vjp=softmax_where_derivative,
    jvp=softmax_where_derivative,
    dtypes=("float64", "float32", "float16", "bfloat16"),
)


@pytest.fixture(scope="session")
def good() -> Subject:
    """A subject that keeps the contract ``zero`` in every dtype and offers all three methods."""
    return GOOD


@pytest.fixture(scope="session")
def changed() -> Callable[..., Subject]:
    """``changed(id, **fields)``: the good subject with some fields replaced, by default without derivatives."""

    def change(id: str, **fields: Any) -> Subject:
        return replace(GOOD, id=id, **{"vjp": None, "jvp": None, **fields})

    return change


@pytest.fixture(scope="session")
def judge() -> Callable[..., Report]:
    """``judge(subject, ...)``: a report at smoke effort, in float32 unless ``dtypes`` says otherwise."""

    def run(*subjects: Subject, dtypes: tuple[str, ...] = ("float32",), **more: Any) -> Report:
        request = {k: more.pop(k) for k in ("contract", "require", "seed", "rounds") if k in more}
        return certify(
            Request(tuple(s.id for s in subjects), dtypes=dtypes, effort=more.pop("effort", "smoke"), **request),
            subjects=subjects,
            **more,
        )

    return run


@pytest.fixture(scope="session")
def select() -> Callable[..., list[Finding]]:
    """``select(report, name, ...)``: findings whose declaration ends so, and whose fields have the given values."""

    def chosen(report: Report, name: str = "", **fields: Any) -> list[Finding]:
        def wanted() -> Iterator[Finding]:
            for f in report.certificate.findings:
                if f.declaration.endswith(name) and all(getattr(f, k) == v for k, v in fields.items()):
                    yield f

        return list(wanted())

    return chosen


@pytest.fixture(scope="session")
def on_empty_rows() -> Callable[..., Subject]:
    """``on_empty_rows(id, policy, **fields)``: the good weights, with ``policy(scores)`` in place of empty rows."""

    def make(id: str, policy: Callable[[Any], Any], **fields: Any) -> Subject:
        def forward(scores: Any, mask: Any) -> Any:
            w = weights(scores, mask)
            empty = ~mask.any(axis=1)
            if empty.any():
                with np.errstate(all="ignore"):
                    w[empty] = policy(scores[empty])
            return w

        return replace(GOOD, id=id, **{"forward": forward, "vjp": None, "jvp": None, **fields})

    return make
