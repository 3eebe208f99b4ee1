"""The page about audits names what the records hold, and what the command offers."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

from hardmask.conformance.commands.audit import audit
from hardmask.conformance.upgrades import Change, Comparison
from hardmask.conformance.upgrades.drift import LEVEL
from hardmask.conformance.upgrades.errors import GROWTH
from hardmask.conformance.upgrades.record import DIRECTIONS, LEVELS, SCHEMA

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()


def names(heading: str) -> list[str]:
    """What the first cells of a table name in code type."""
    (rows,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.M)
    return [name for row in rows.splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@pytest.mark.parametrize(("heading", "record"), [("field of the record", Comparison), ("field of a change", Change)])
def test_every_field_is_described(heading: str, record: type[msgspec.Struct]) -> None:
    assert sorted(names(heading)) == sorted(f.name for f in msgspec.structs.fields(record))


def test_levels_directions_and_defaults_are_those_of_the_code() -> None:
    assert tuple(names("level")) == LEVELS
    assert all(f"`{direction}`" in PAGE for direction in DIRECTIONS)
    assert f"`{SCHEMA}`" in PAGE
    option = next(p for p in audit.params if isinstance(p, click.Option) and p.name == "fail_on")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == LEVELS
    assert f"The default is `{option.default}`" in PAGE
    assert f"The level of a whole audit is {LEVEL:g}" in PAGE
    assert GROWTH == 2.0
    assert "by a factor of two" in " ".join(PAGE.split())
