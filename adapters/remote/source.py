"""Where the subjects of a run come from, as a value that travels to other processes: subjects themselves do not."""

from __future__ import annotations

import atexit
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ..builds import LONGEST
from ..errors import TargetError, printable
from ..registry import Anything, nothing_matches, one_name_twice, owners, resolve_all
from .options import Options
from .proxies import proxy
from .worker import Worker


@dataclass(frozen=True)
class InProcess:
    """Subjects that run in whatever process asks for them.

    >>> [s.id for s in InProcess(("numpy.softmax-where",)).subjects]
    ['numpy.softmax-where']
    """

    targets: tuple[str, ...]
    specimens: bool = False

    @property
    def subjects(self) -> tuple[Anything, ...]:
        """The subjects; a file that was edited meanwhile is read anew."""
        return tuple(resolve_all(self.targets, specimens=self.specimens))

    def close(self) -> None:
        """Do nothing: they end with the process."""


@dataclass(frozen=True)
class InWorkers:
    """Subjects that run in workers: one for each adapter, and one for each file or module of a user, in every process.

    ``described``: what the workers said about them, so that only one process has to ask.
    """

    targets: tuple[str, ...]
    specimens: bool
    options: Options
    described: str

    @property
    def subjects(self) -> tuple[Anything, ...]:
        """Proxies; a worker starts with the first call of one of its subjects."""
        return _proxies(self)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what they run on, by distribution name, as the workers' interpreter has them."""
        found: dict[str, str] = {}
        for part in json.loads(self.described):
            for its in part["versions"].values():
                found.update({printable(name): printable(str(v)) for name, v in its.items()})
        return dict(sorted(found.items()))

    @property
    def builds(self) -> dict[str, dict[str, str]]:
        """The builds and settings of what they run on, as their processes tell them (:mod:`hardmask.adapters.builds`).
        Each worker has loaded what it runs, so two that name one framework tell the same."""
        found: dict[str, dict[str, str]] = {}
        for part in json.loads(self.described):
            for name, facts in part["builds"].items():
                found[printable(name)] = {printable(key): printable(str(text), LONGEST) for key, text in facts.items()}
        return dict(sorted(found.items()))

    @property
    def python(self) -> str:
        """The version of the workers' interpreter."""
        return str(json.loads(self.described)[0]["python"])

    def close(self) -> None:
        """End the workers; those that are called again start again, with a clean record."""
        for part in json.loads(self.described):
            worker = _WORKERS.pop((self.options, part["key"], tuple(part["targets"]), self.specimens), None)
            if worker is not None:
                worker.close()
        _proxies.cache_clear()


Source = InProcess | InWorkers
"""Where subjects run. Both have ``targets``, ``subjects`` and ``close``."""


def source_of(targets: Sequence[str], *, specimens: bool = False, options: Options | None = None) -> Source:
    """The subjects that the targets name (:func:`~hardmask.adapters.registry.resolve_all`), in workers with
    ``options``, in this process without.

    Raises TargetError, also when a framework ends its process while it is loaded.
    """
    if options is None:
        return InProcess(tuple(targets), specimens)
    parts = _split(targets, specimens, options)
    described = []
    for key, mine in parts.items():
        found = _worker(options, key, mine, specimens).opened()
        try:
            chosen = dict(zip(mine, found["chosen"], strict=True))
            subjects = {s["fields"]["id"]: s for s in found["subjects"]}
            facts = {name: {k: dict(v) for k, v in found[name].items()} for name in ("versions", "builds")}
            python = str(found["python"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise TargetError(
                f"A worker for {', '.join(mine)} described its subjects in a way that cannot be."
            ) from None
        described.append(
            {"key": key, "targets": mine, "chosen": chosen, "subjects": subjects, "python": python, **facts}
        )
    source = InWorkers(tuple(targets), specimens, options, json.dumps(described))
    _proxies(source)
    return source


@cache
def _proxies(source: InWorkers) -> tuple[Anything, ...]:
    parts = json.loads(source.described)
    made: dict[tuple[int, str], Anything] = {}
    found: dict[str, Anything] = {}
    for target in source.targets:
        mine: list[Anything] = []
        for number, part in enumerate(parts):
            worker = _worker(source.options, part["key"], part["targets"], source.specimens)
            for id in part["chosen"].get(target, ()):
                if (number, id) not in made:
                    made[number, id] = proxy(part["subjects"][id], worker)
                mine.append(made[number, id])
        if not mine and re.search("[*?]", target):
            raise nothing_matches(target)
        for subject in mine:
            if found.setdefault(subject.id, subject) is not subject:
                raise one_name_twice(subject.id)
    return tuple(found.values())


def _split(targets: Sequence[str], specimens: bool, options: Options) -> dict[str, list[str]]:
    """Which worker looks for which targets: by adapter, and by file or module (with a colon behind it)."""
    if options.python is None:
        named: Sequence[Sequence[str]] = [owners(target) for target in targets]
    else:  # which adapters there are, that interpreter alone can tell
        named = Worker(options, None, tuple(targets), specimens).owners(targets)
    parts: dict[str, list[str]] = {}
    for target, names in zip(targets, named, strict=True):
        for key in names or ([f"{target.rpartition(':')[0]}:"] if ":" in target else []):
            mine = parts.setdefault(key, [])
            if target not in mine:
                mine.append(target)
    return parts


_WORKERS: dict[tuple[Options, str, tuple[str, ...], bool], Worker] = {}


def _worker(options: Options, key: str, targets: Sequence[str], specimens: bool) -> Worker:
    """This process's worker, started or not."""
    name = options, key, tuple(targets), specimens
    if name not in _WORKERS:
        _WORKERS[name] = Worker(options, None if key.endswith(":") else key, tuple(targets), specimens)
    return _WORKERS[name]


@atexit.register
def close_workers() -> None:
    """End all workers of this process; the files of users are then read anew."""
    while _WORKERS:
        _WORKERS.popitem()[1].close()
    _proxies.cache_clear()
