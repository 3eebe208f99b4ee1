"""Every page of the documentation, executed: its files, its Python sessions, its commands, its links.

In a console block the lines behind ``$`` are commands, the others their output; a line ``…`` stands for any number of
lines. Not compared are blank lines, the width of gaps, the share of a budget that was used, seconds, and what is not
correctly rounded. A command without ``--effort`` takes a minute on more rows than a test needs, and a sweep without
``--fraction`` takes minutes: they must be shown without output, and run here as smoke, or on a few scores.
"""

from __future__ import annotations

import doctest
import importlib
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.conformance.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
OWN_TESTS = {"howto-adapter.md"}  # tests/adapters/test_howto.py runs its snippets on every subject that they make
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
ANY = "…"
MEND = "To show what it prints now, run: python tests/docs/refresh.py"


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of one kind on a page."""
    return [code for found, code in BLOCK.findall(page.read_text()) if found == kind]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows: blocks whose first line is a comment with the name."""
    shown = [code for kind in ("python", "toml", "yaml") for code in blocks(page, kind)]
    named = [(re.match(r"# (\S+\.(?:py|toml|ya?ml))\n", code), code) for code in shown]
    return {name.group(1): code for name, code in named if name}


def sessions(page: Path) -> str:
    """The interactive Python of a page, as one session."""
    return "\n".join(code for code in blocks(page, "python") if code.startswith(">>>"))


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines of output shown."""
    found: list[tuple[str, list[str]]] = []
    for code in blocks(page, "console"):
        for line in code.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif line.strip():
                found[-1][1].append(line)
    return found


def executed(*, python: bool) -> list[Path]:
    """The pages with something to run, apart from those that have a test of their own."""
    has = sessions if python else commands
    return [page for page in PAGES if page.parent.name == "docs" and page.name not in OWN_TESTS and has(page)]


def plain(line: str) -> str:
    """A line of output without what may differ from one machine to the next."""
    line = re.sub(
        r"(?:(?<=pass )|(?<=FAIL )|(?<=permitted )|(?<=at most ))(?:<?\.\d+|\d+\.\d+|\d+e[+-]\d+|0)(?= |$)",
        "#",
        line.rstrip(),
    )
    line = re.sub(r"(?<= )\d+\.\d(?= s\.$)|(?<= )\d+\.\d$", "#", line)
    # How a backend rounds depends on the instructions of the processor.
    line = re.sub(r"[\d,]+ \(\d+\.\d+ %\) +\d+", "#", line)
    return " ".join(line.split())


def missing(shown: list[str], output: str) -> str | None:
    """The first shown line that the output does not have at its place, or None."""
    lines = [plain(line) for line in output.splitlines() if line.strip()]
    at, loose = 0, False
    for line in map(plain, shown):
        if line == ANY:
            loose = True
            continue
        try:
            place = lines.index(line, at)
        except ValueError:
            return line
        if place != at and not loose:
            return line
        at, loose = place + 1, False
    return None if loose or at == len(lines) else f"(the output goes on) {lines[at]}"


def run(command: str) -> tuple[int, str]:
    """Run ``hardmask …``, ``python FILE`` or ``cat FILE`` in this process: exit code, and all that was printed."""
    program, *arguments = shlex.split(command)
    if program == "cat":
        return 0, Path(arguments[0]).read_text()
    if program == "python":
        return of_script(arguments[0])
    assert program == "hardmask", command
    if arguments[0] == "certify" and "--exhaustive" in arguments:
        arguments += [] if "--fraction" in arguments else ["--fraction", "0.00005", "--jobs", "1"]
    elif arguments[0] == "certify" and "--effort" not in arguments:
        arguments += ["--effort", "smoke"]
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def of_script(file: str) -> tuple[int, str]:
    """Exit code and output of a script, which may end with a sentence, as a shell shows it."""
    with redirect_stdout(StringIO()) as printed, np.errstate():
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit as end:
            said = end.code if isinstance(end.code, str) else ""
            return 1 if said else int(end.code or 0), f"{printed.getvalue()}{said}\n"
    return 0, printed.getvalue()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty current folder; the user's modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    yield
    for name in list(sys.modules):
        if name.startswith("hardmask_target_"):
            del sys.modules[name]


@pytest.mark.parametrize("page", executed(python=False), ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_shows(page: Path) -> None:
    for name, code in files(page).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(code)
    configured = any(name.endswith(".toml") and "\neffort = " in code for name, code in files(page).items())
    exit_code = 0
    for command, shown in commands(page):
        if command == "echo $?":
            assert shown == [str(exit_code)], page.name
            continue
        exit_code, output = run(command)
        if not shown:
            assert exit_code in (0, 1), (command, output)
            continue
        sized = "--fraction" in command if "--exhaustive" in command else configured or "--effort" in command
        assert "hardmask certify" not in command or sized, f"'{command}' must name the effort that it shows."
        line = missing(shown, output)
        assert line is None, f"'{command}' on {page.name} no longer prints: {line}\n{MEND}\nIt prints:\n{output}"


@pytest.mark.parametrize("page", executed(python=True), ids=lambda page: page.name)
def test_the_sessions_of_a_page_run_as_shown(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(sessions(page), {}, page.name, str(page), 0)
    assert test.examples
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert result.failed == 0, "".join([*output, MEND])


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = BLOCK.sub("", page.read_text())
    made: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        made.add(base if base not in made else f"{base}-1")
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name} links to '{target}', which is not there."
        if anchor:
            assert anchor in anchors(there), f"{page.name} links to '{target}'; {there.name} has no such heading."


def test_the_map_names_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, f"docs/index.md does not link to {page.name}."


def test_a_missing_line_is_noticed() -> None:
    output = "a  b\n\nc .84\nd\n"
    assert missing(["a b", "c .84", "d"], output) is None
    assert missing(["a b", ANY], output) is None
    assert missing(["a b", ANY, "d"], output) is None
    assert missing(["a b", "d"], output) == "d"
    assert missing(["a b", ANY, "e"], output) == "e"
    assert missing(["a b"], output) == "(the output goes on) c .84"
    assert missing(["x pass .9 y"], "x pass .8 y") is None
    assert missing(["x pass .9"], "x FAIL .9") == "x pass #"


def refresher(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that rewrites the pages; as a script it finds this module beside it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("refresh")


def test_the_refreshed_lines_are_those_most_like_the_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    selected = refresher(monkeypatch).selected
    output = "title\n\nscore 7 8 9\nreturned 0 0\nscore 1 2 3\nreturned 4 5\nend of it\n"
    assert selected(["anything"], output) == [line for line in output.splitlines() if line]
    assert selected(["titel", ANY, "returned 4 6", "end of it", ANY], output) == [
        *("title", ANY),
        *("returned 4 5", "end of it", ANY),
    ]
    assert selected([ANY, "score 6 5 4", ANY, "returned 1 1"], output) == [ANY, "score 7 8 9", ANY, "returned 0 0"]


def test_a_refreshed_page_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# f.py\nprint(1)\nprint(2)\n```\n\n```console\n$ python f.py\n3\n…\n```\n\n"
        "```python\n>>> x = 2\n>>> x + x\n5\n```\n\n```python\n>>> x\n3\n```\n"
    )
    assert refresher(monkeypatch).refresh(page)
    assert commands(page) == [("python f.py", ["1", "…"])]
    assert sessions(page) == ">>> x = 2\n>>> x + x\n4\n\n>>> x\n2\n"
    assert not refresher(monkeypatch).refresh(page)
