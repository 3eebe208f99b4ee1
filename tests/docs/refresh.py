"""Rewrite what the pages of the documentation show to what their commands and sessions print now.

    python tests/docs/refresh.py

Between two lines ``…`` it shows as many lines as before: those of the new output that look most like the old ones. So
look at the difference before you commit it, and adapt the text beside it. It writes docs/declarations.md afresh too.
"""

from __future__ import annotations

import doctest
import os
import re
import runpy
import tempfile
from contextlib import redirect_stdout
from difflib import SequenceMatcher
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from test_pages import ANY, BLOCK, ROOT, executed, files, run


def likeness(a: list[str], b: list[str]) -> float:
    """How much two runs of lines have in common, words rather than numbers."""
    first, second = (re.sub(r"\d", "0", " ".join(" ".join(lines).split())) for lines in (a, b))
    return SequenceMatcher(None, first.split(" "), second.split(" ")).ratio()


def selected(shown: list[str], output: str) -> list[str]:
    """The lines of the output that take the place of the shown ones."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    if ANY not in shown:
        return lines
    made: list[str] = []
    at = 0
    for loose, group in groupby(shown, lambda line: line == ANY):
        old = list(group)
        if loose:
            made.append(ANY)
            continue
        starts = range(at, max(at, len(lines) - len(old)) + 1) if made else [0]
        start = max(starts, key=lambda i: (likeness(old, lines[i : i + len(old)]), -i))
        at = start + len(old)
        made += lines[start:at]
    return made


def console(code: str) -> str:
    """A block of commands with what they print now."""
    made: list[str] = []
    exit_code = 0
    for part in re.split(r"^(?=\$ )", code, flags=re.M):
        if not part:
            continue
        head, *shown = (line for line in part.splitlines() if line.strip())
        made.append(head)
        if head == "$ echo $?":
            made.append(str(exit_code))
            continue
        exit_code, output = run(head.removeprefix("$ "))
        made += selected(shown, output) if shown else []
    return "\n".join(made) + "\n"


def session(code: str, names: dict[str, Any]) -> str:
    """A Python session with what it prints now; names carry over from one session of a page to the next.

    A traceback is left as it is shown: the tests compare it.
    """
    lines, changes = code.splitlines(keepends=True), []
    for example in doctest.DocTestParser().get_examples(code):
        if example.exc_msg is not None:
            continue
        with redirect_stdout(StringIO()) as printed:
            try:
                exec(compile(example.source, "<page>", "single"), names)
            except Exception:
                if example.exc_msg is None:
                    raise
                continue  # an error that is shown is compared by the tests, and written by hand
        got = printed.getvalue()
        if not doctest.OutputChecker().check_output(example.want, got, doctest.ELLIPSIS):
            start = example.lineno + example.source.count("\n")
            changes.append((start, start + example.want.count("\n"), got.splitlines(keepends=True)))
    for start, end, new in reversed(changes):
        lines[start:end] = new
    return "".join(lines)


def refresh(page: Path) -> bool:
    """Rewrite a page in place; true when something changed."""
    old, names = page.read_text(), {"__name__": "__main__"}
    for name, code in files(page).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(code)

    def block(found: re.Match[str]) -> str:
        kind, code = found.groups()
        if kind == "console":
            code = console(code)
        elif kind == "python" and code.startswith(">>>"):
            code = session(code, names)
        return f"```{kind}\n{code}```"

    new = BLOCK.sub(block, old)
    page.write_text(new)
    return new != old


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in sorted({*executed(python=True), *executed(python=False)}):
            print(page.name, "changed" if refresh(page) else "as before")
        os.chdir(ROOT)  # a folder in use is not removed everywhere
    runpy.run_path(str(ROOT / "docs" / "generate_declarations.py"), run_name="__main__")
