"""The pytest plugin: ``pytest --hardmask TARGET`` collects one test for each subject and declaration.

The tests share checks, seeds and recorded deviations with ``hardmask certify``, and come to its verdicts. A failure
shows the row of the terminal report; a known deviation is an expected failure; what is not judged is skipped with its
reason. Subjects are judged once, when the first of their tests runs, also where pytest-xdist runs several processes.

Without one of its options the plugin does nothing, and imports nothing but pytest and the standard library.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .gate.asked import Asked
    from .gate.session import Run

FOLDER = "hardmask_folder"
"""Where the processes of pytest-xdist share what was judged; the key under which the first process names it."""

_asked: pytest.StashKey[Asked] = pytest.StashKey()
_folder = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; each has the meaning of its namesake of ``hardmask certify``."""
    group = parser.getgroup("hardmask", "conformance of masked softmax and attention")
    group.addoption(
        "--hardmask",
        action="append",
        default=[],
        dest="hardmask_targets",
        metavar="TARGET",
        help="Judge this adapter, subject, glob or file.py:object (repeatable).",
    )
    group.addoption("--hardmask-config", metavar="FILE", help="Read this hardmask.toml or pyproject.toml.")
    group.addoption("--hardmask-effort", metavar="EFFORT", help="smoke, default or deep.")
    group.addoption("--hardmask-seed", type=int, metavar="SEED", help="Seed of all random rows.")
    group.addoption(
        "--hardmask-dtype",
        action="append",
        default=[],
        dest="hardmask_dtypes",
        metavar="DTYPE",
        help="Judge this dtype only (repeatable).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the configuration, if any of this was asked for. Raises UsageError with a sentence for a mistake in it."""
    given = config.option
    if not given.hardmask_targets and given.hardmask_config is None:
        return
    from .gate.asked import asked

    try:
        config.stash[_asked] = found = asked(
            tuple(given.hardmask_targets),
            file=given.hardmask_config,
            effort=given.hardmask_effort,
            seed=given.hardmask_seed,
            dtypes=tuple(given.hardmask_dtypes),
            start=config.invocation_params.dir,
        )
        found.checked()
        found.request()
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where to share what was judged. Raises UsageError for targets that are not there:
    from within such a process it would end in a traceback."""
    config = node.config
    if _asked in config.stash:
        if _folder not in config.stash:
            from .gate.session import Run

            try:
                Run(config.stash[_asked]).declarations()
            except ValueError as problem:
                raise pytest.UsageError(str(problem)) from None
            config.stash[_folder] = tempfile.mkdtemp(prefix="hardmask-pytest-")
        node.workerinput[FOLDER] = config.stash[_folder]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the processes shared."""
    if _folder in config.stash:
        shutil.rmtree(config.stash[_folder], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by -k
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each subject and declaration. Raises UsageError for targets that are not there."""
    if _asked not in config.stash:
        return
    from .gate.session import Run

    shared = getattr(config, "workerinput", {}).get(FOLDER)
    run = Run(config.stash[_asked], Path(shared) if shared else None)
    try:
        items.extend(Suite.from_parent(session, name="hardmask", nodeid="hardmask", run=run).collect())
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Judge no more subjects than the selected tests need."""
    runs = {item.run: None for item in session.items if isinstance(item, Judged)}
    for run in runs:
        run.select({item.subject for item in session.items if isinstance(item, Conformance)})


class NotCertified(Exception):
    """A test failed; the message is what pytest shows."""


class Suite(pytest.Collector):
    """All tests of one run."""

    def __init__(self, *, run: Run, **more: Any) -> None:
        super().__init__(**more)
        self.run = run

    def collect(self) -> Iterator[Judged]:
        """The tests, subject by subject; then the deviations, if there are any, and the verdict of the whole."""
        for subject, declarations in self.run.declarations().items():
            group = Group.from_parent(self, name=subject)
            for name in declarations:
                yield Conformance.from_parent(group, name=name, run=self.run)
        if self.run.ask.rules:
            yield Deviations.from_parent(self, name="deviations", run=self.run)
        yield Verdict.from_parent(self, name="verdict", run=self.run)


class Group(pytest.Collector):
    """The tests of one subject."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: the suite makes its tests."""
        return []


class Judged(pytest.Item):
    """A test about a run, which is judged when the first of them begins."""

    def __init__(self, *, run: Run, **more: Any) -> None:
        super().__init__(**more)
        self.run = run

    def setup(self) -> None:
        """Judge the subjects, unless that is done. What cannot be carried out is an error of the test."""
        from .suite_fault import SuiteFault

        try:
            self.run.report()
        except (ValueError, SuiteFault) as problem:
            raise NotCertified(str(problem)) from None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone: where in hardmask it was raised helps nobody."""
        if isinstance(excinfo.value, NotCertified):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """What a report calls the test."""
        return self.config.rootpath, None, self.nodeid.replace("::", " ")


class Conformance(Judged):
    """What one subject came to on one declaration, in all dtypes."""

    @property
    def subject(self) -> str:
        """The id of the subject."""
        assert self.parent is not None
        return self.parent.name

    def setup(self) -> None:
        """An error of the subject is an error of the test, not a failure."""
        super().setup()
        outcome = self.run.outcome(self.subject, self.name)
        if outcome.kind == "error":
            raise NotCertified(outcome.text)

    def runtest(self) -> None:
        """Pass, fail, be skipped, or fail as expected."""
        outcome = self.run.outcome(self.subject, self.name)
        if outcome.kind == "fail":
            raise NotCertified(outcome.text)
        if outcome.kind == "known":
            pytest.xfail(outcome.text)
        if outcome.kind == "skip":
            pytest.skip(outcome.text)
        if outcome.text:
            self.add_report_section("call", "hardmask", outcome.text)


class Deviations(Judged):
    """Whether every recorded deviation still holds."""

    def runtest(self) -> None:
        """Fail with a sentence for each that does not."""
        sentences = self.run.stale()
        if sentences:
            raise NotCertified("\n".join(sentences))


class Verdict(Judged):
    """What ``hardmask certify`` says in the end."""

    def runtest(self) -> None:
        """Fail where its exit code is not 0."""
        code, reason = self.run.report()[1:]
        if code:
            raise NotCertified(reason)
