"""The badge: its words and its colour."""

from __future__ import annotations

import msgspec
import pytest

from hardmask.conformance.reports import Outcome, badge

replace = msgspec.structs.replace


@pytest.mark.parametrize(
    ("name", "message", "color"),
    [
        ("passing", "certified", "brightgreen"),
        ("failing", "1 of 4 subjects fails", "red"),
        ("deviating", "certified, 1 known deviation", "yellowgreen"),
    ],
)
def test_it_says_what_the_certificate_came_to(
    name: str, message: str, color: str, request: pytest.FixtureRequest
) -> None:
    found = badge(request.getfixturevalue(name))
    assert found == {"schemaVersion": 1, "label": "hardmask", "message": message, "color": color}


def test_what_certifies_nothing_is_never_green(passing: Outcome) -> None:
    cut = replace(passing.certificate, complete=False)
    assert badge(Outcome(cut, 1, "Cut short."))["color"] == "lightgrey"
    assert badge(Outcome(passing.certificate, 1, "Not complete."))["message"] == "not certified"


def test_a_stale_deviation_is_named(deviating: Outcome) -> None:
    stale = [replace(d, status="fixed") for d in deviating.certificate.deviations]
    found = badge(Outcome(replace(deviating.certificate, deviations=stale), 1, "Stale."))
    assert (found["message"], found["color"]) == ("1 stale deviation", "red")
