"""``hardmask.toml``, or ``[tool.hardmask]`` in ``pyproject.toml``: what a project certifies, and what is known to fail.

Every mistake in the file is one sentence that names the file, the place and the mend. Importing this is cheap: whether
a value is one of those offered is found out by ``Request``, whose word :func:`explained` puts beside the file's name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..strict_json import content_of
from ..text import printable
from .rule import Rule

FILE = "hardmask.toml"
LARGEST = 256 * 2**10
"""Bytes of a configuration file, at most."""

DEEPEST = 200
"""Dots in one line, at most: what a parser needs grows with the square of them, and with the cube."""

LISTS = ("targets", "require", "dtypes")
KEYS = (*LISTS, "contract", "specimens", "effort", "rounds", "seed", "deviation")
DEVIATION = (
    *("subject", "declaration", "declarations", "dtype", "dtypes"),
    *("family", "reason", "link", "expires"),
)
DTYPES = ("float64", "float32", "float16", "bfloat16")


class ConfigurationError(ValueError):
    """A configuration file cannot be used; the message is a sentence that names it."""


@dataclass(frozen=True)
class Configuration:
    """What a file asks for; None and empty stand for what it leaves open. ``rules``: one for each declaration and dtype
    that a deviation lists."""

    path: Path
    targets: tuple[str, ...] = ()
    contract: str | None = None
    require: tuple[str, ...] = ()
    specimens: bool = False
    dtypes: tuple[str, ...] = ()
    effort: str | None = None
    rounds: int | None = None
    seed: int | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def name(self) -> str:
        """The file as messages call it."""
        return printable(os.path.relpath(self.path))

    def explained(self, request: Callable[..., Any]) -> None:
        """Ask ``request`` (the class) for each value alone, and put the file and the key before what it says.

        Raises ConfigurationError.
        """
        for key in ("contract", "require", "dtypes", "effort"):
            value = getattr(self, key)
            if value:
                try:
                    request(("any",), **{key: value})
                except ValueError as problem:
                    raise ConfigurationError(f"{self.name}: '{key}': {problem}") from None


def found(start: str | Path = ".") -> Configuration | None:
    """The configuration of the nearest folder that has one, from ``start`` up to the root of its repository.

    Without a repository only ``start`` is looked at. ``hardmask.toml`` comes before ``pyproject.toml``. Raises
    ConfigurationError.
    """
    folder = Path(start).absolute()
    above = [folder, *folder.parents]
    root = next((i for i, f in enumerate(above) if (f / ".git").exists()), 0)
    for one in above[: root + 1]:
        if os.path.lexists(one / FILE):
            return read(os.path.relpath(one / FILE))
        if (one / "pyproject.toml").is_file() and _tool(one / "pyproject.toml"):
            return read(os.path.relpath(one / "pyproject.toml"))
    return None


def read(path: str | Path) -> Configuration:
    """The configuration in a file; one called ``pyproject.toml`` holds it in ``[tool.hardmask]``.

    File targets are taken relative to the file's folder. Raises ConfigurationError.

    >>> read("no-such.toml")
    Traceback (most recent call last):
    ...
    hardmask.conformance.gate.configuration.ConfigurationError: The configuration 'no-such.toml' cannot be read: \
No such file or directory.
    """
    path = Path(path)
    content = _parsed(path)
    where = printable(str(path))
    if path.name == "pyproject.toml":
        tool = content.get("tool")
        content = tool.get("hardmask") if isinstance(tool, dict) else None  # type: ignore[assignment]
        if content is None:
            raise ConfigurationError(f"{where}: there is no table [tool.hardmask]. Add it, or name another file.")
        where += ", [tool.hardmask]"
        if not isinstance(content, dict):
            raise ConfigurationError(f"{where} is not a table. Write '[tool.hardmask]' above its keys.")
    return _Reader(where).configuration(path.absolute(), content)


def _tool(path: Path) -> bool:
    """Whether a pyproject.toml speaks of hardmask at all: one that does not may hold what it likes."""
    try:
        return b"hardmask" in path.read_bytes() and "hardmask" in _parsed(path).get("tool", {})
    except (OSError, ConfigurationError):
        return False


def _parsed(path: Path) -> dict[str, Any]:
    name = printable(str(path))
    try:
        content = content_of(path, "configuration")
    except ValueError as problem:
        raise ConfigurationError(str(problem)) from None
    if len(content) > LARGEST:
        raise ConfigurationError(f"{name} is no configuration: it has more than {LARGEST // 2**10} KiB.")
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        place = content[: problem.start].count(b"\n") + 1
        raise ConfigurationError(f"{name}: line {place} is not UTF-8. Save the file as UTF-8.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > DEEPEST:
            raise ConfigurationError(f"{name}: line {number} is nested too deeply. Use plain keys.")
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise ConfigurationError(f"{name} is nested too deeply. Use plain tables and lists.") from None
    except ValueError as problem:  # TOMLDecodeError is one; so is the refusal of an integer with thousands of digits
        raise ConfigurationError(f"{name} is not TOML: {printable(str(problem)).rstrip('.')}.") from None


class _Reader:
    """Takes the keys of one file apart; ``where`` begins every message."""

    def __init__(self, where: str) -> None:
        self.where = where

    def configuration(self, path: Path, table: dict[str, Any]) -> Configuration:
        self.keys(table, KEYS, self.where)
        targets = tuple(_beside(path.parent, t) for t in self.strings(table, "targets", self.where))
        rules = table.get("deviation", [])
        if not isinstance(rules, list) or not all(isinstance(r, dict) for r in rules):
            raise ConfigurationError(f"{self.where}: 'deviation' must be tables. Write '[[deviation]]' above each.")
        made = tuple(rule for number, r in enumerate(rules, 1) for rule in self.rules(number, r))
        seen: set[tuple[str, str, str, str]] = set()
        for rule in made:
            about = (rule.subject, rule.declaration, rule.dtype, rule.family)
            if about in seen:
                raise ConfigurationError(f"{self.where}: two deviations are about {rule.what}. Delete one.")
            seen.add(about)
        return Configuration(
            path,
            targets,
            self.string(table, "contract", self.where) or None,
            self.strings(table, "require", self.where),
            self.boolean(table, "specimens"),
            tuple(dict.fromkeys(self.strings(table, "dtypes", self.where))),
            self.string(table, "effort", self.where) or None,
            self.whole(table, "rounds", 1),
            self.whole(table, "seed", 0),
            made,
        )

    def rules(self, number: int, table: dict[str, Any]) -> Iterator[Rule]:
        where = f"{self.where}, deviation {number}"
        self.keys(table, DEVIATION, where)
        subject = self.string(table, "subject", where)
        if not subject:
            raise ConfigurationError(f"{where} names no 'subject'. Give the id of one, or a glob.")
        where += f" ({printable(subject, 80)})"
        names = self.either(table, "declaration", where)
        if not names:
            raise ConfigurationError(f"{where} names no 'declaration'. Give a Lean name, its last part, or a glob.")
        dtypes = self.either(table, "dtype", where)
        for dtype in dtypes:
            if dtype not in DTYPES:
                raise ConfigurationError(f"{where}: there is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
        reason = " ".join(self.string(table, "reason", where).split())
        if not reason:
            lack = "an empty 'reason'" if "reason" in table else "no 'reason'"
            raise ConfigurationError(f"{where} has {lack}. Say why this failure is known and may pass for now.")
        link = self.string(table, "link", where)
        if link and not re.fullmatch(r"https?://\S+", link):
            raise ConfigurationError(f"{where}: the 'link' '{link}' is no address. Begin it with https://, or drop it.")
        family, expires = self.string(table, "family", where), self.day(table, where)
        for name in names:
            for dtype in dtypes or ("",):
                yield Rule(subject, name, dtype, family, reason, link, expires)

    def keys(self, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in known:
                close = get_close_matches(key[:80], known, 1)
                hint = f"Did you mean '{close[0]}'?" if close else f"Choose from: {', '.join(known)}."
                raise ConfigurationError(f"{where}: there is no key '{printable(key, 80)}'. {hint}")

    def string(self, table: dict[str, Any], key: str, where: str) -> str:
        return self.text(table.get(key, ""), key, where, "text in quotes")

    def text(self, value: Any, key: str, where: str, wanted: str) -> str:
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}: '{key}' must be {wanted}, not {_kind(value)}.")
        value = value.strip()
        if not (value if key != "reason" else "".join(value.split())).isprintable():
            raise ConfigurationError(f"{where}: '{key}' holds control characters. Delete them.")
        return value

    def strings(self, table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list):
            raise ConfigurationError(f"{where}: '{key}' must be a list of texts, not {_kind(value)}.")
        found = tuple(self.text(v, key, where, "a list of texts") for v in value)
        if "" in found:
            raise ConfigurationError(f"{where}: '{key}' holds an empty text. Delete it.")
        return found

    def either(self, table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
        """One name, or the plural with a list of them."""
        if key in table and f"{key}s" in table:
            raise ConfigurationError(f"{where} has both '{key}' and '{key}s'. Keep one.")
        if f"{key}s" in table:
            return self.strings(table, f"{key}s", where)
        one = self.string(table, key, where)
        return (one,) if one else ()

    def boolean(self, table: dict[str, Any], key: str) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise ConfigurationError(f"{self.where}: '{key}' must be true or false, not {_kind(value)}.")
        return value

    def whole(self, table: dict[str, Any], key: str, least: int) -> int | None:
        value = table.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigurationError(f"{self.where}: '{key}' must be a whole number, not {_kind(value)}.")
        if not least <= value < 2**63:
            raise ConfigurationError(f"{self.where}: '{key}' must be a whole number from {least}, below 2^63.")
        return value

    def day(self, table: dict[str, Any], where: str) -> date:
        value = table.get("expires")
        form = "Write the last day on which the failure may pass as 2030-12-31."
        if value is None:
            raise ConfigurationError(f"{where} has no 'expires'. {form}")
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            try:
                return date.fromisoformat(value)
            except ValueError:
                pass
        raise ConfigurationError(f"{where}: 'expires' is no day. {form}")


def _beside(folder: Path, target: str) -> str:
    """A target in a file of the configuration's folder, as it is called from the working folder."""
    file, colon, name = target.rpartition(":")
    if not colon or not file.endswith(".py"):
        return target
    return f"{os.path.relpath(folder / file)}:{name}"


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date or time")
