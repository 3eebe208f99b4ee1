"""Which adapters there are, and what a target on the command line means.

Built in are NumPy, PyTorch, JAX, Flax and ONNX Runtime. Any installed package may add one through the entry-point group
``hardmask.adapters``: the entry's name is the adapter's name, and it loads to a list of subjects or to a function that
returns one. A framework is imported only when a target asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec

from .attention import Attention
from .attention_rows import rows_through
from .errors import TargetError, said
from .subject import Subject
from .user_code import as_subjects, subjects_of

GROUP = "hardmask.adapters"

Anything = Subject | Attention
"""What an adapter offers: masked softmaxes and masked attentions."""


@dataclass(frozen=True)
class Adapter:
    """One family of subjects.

    ``modules`` hold it, relative to this package (each one's ``subjects()`` returns some), or ``entry`` does.
    ``needs`` are the import names without which it cannot load; ``reports`` the distributions whose versions belong
    into a report, where installed; ``mend`` is what to do when a need is missing.
    """

    name: str
    modules: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    mend: str = ""
    entry: EntryPoint | None = None

    @property
    def missing(self) -> str | None:
        """The first framework that is needed and not installed, or None. Imports nothing."""
        return next((need for need in self.needs if find_spec(need) is None), None)

    @property
    def version(self) -> str | None:
        """The version of the framework, or of the package that registers a third-party adapter; None when absent."""
        if self.entry is not None:
            return self.entry.dist.version if self.entry.dist is not None else None
        return _version(self.needs[0])

    def load(self) -> list[Anything]:
        """All subjects, specimens included. Raises TargetError with the mend when that is impossible."""
        if missing := self.missing:
            raise TargetError(f"The target '{self.name}' needs {missing}, which is not installed. {self.mend}")
        return list(_load(self))


BUILT_IN: tuple[Adapter, ...] = (
    Adapter(
        "numpy",
        (".numpy_rows", ".numpy_attention"),
        ("numpy",),
        ("numpy", "ml_dtypes", "scipy"),
        "Run: pip install numpy",
    ),
    Adapter(
        "torch",
        (".torch_rows", ".torch_attention"),
        ("torch",),
        ("torch",),
        "Install the build of PyTorch that you want certified first (https://pytorch.org/get-started), "
        "then run: pip install 'hardmask[torch]'",
    ),
    Adapter(
        "jax",
        (".jax_rows", ".jax_attention"),
        ("jax",),
        ("jax", "jaxlib"),
        "Run: pip install 'hardmask[jax]'",
    ),
    Adapter(
        "flax",
        (".flax_attention",),
        ("flax", "jax"),
        ("flax", "jax", "jaxlib"),
        "Run: pip install 'hardmask[flax]'",
    ),
    Adapter(
        "onnx",
        (".onnx_attention",),
        ("onnxruntime", "onnx"),
        ("onnxruntime", "onnx", "onnxscript", "torch"),
        "Run: pip install 'hardmask[onnx]'",
    ),
)


@dataclass(frozen=True)
class Available:
    """One line of ``hardmask list``: an adapter, whether it can run, its framework's version, its subjects.

    ``problem`` is a sentence with the mend where ``subjects`` is empty because the adapter cannot be loaded.
    """

    adapter: str
    installed: bool
    version: str | None
    subjects: tuple[Anything, ...]
    problem: str | None = None


def adapters() -> dict[str, Adapter]:
    """All adapters by name: the built-in ones, then those that installed packages register.

    Raises TargetError when a package registers a name that is already taken.
    """
    found = {adapter.name: adapter for adapter in BUILT_IN}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        if entry.name in found:
            raise TargetError(
                f"The entry point '{entry.value}' registers an adapter called '{entry.name}', a name that is taken. "
                "Rename the entry point, or uninstall its package."
            )
        found[entry.name] = Adapter(entry.name, entry=entry)
    return found


def available() -> list[Available]:
    """Every adapter with its subjects, without importing a framework that is absent."""
    lines = []
    for adapter in adapters().values():
        try:
            lines.append(Available(adapter.name, True, adapter.version, tuple(adapter.load())))
        except TargetError as e:
            lines.append(Available(adapter.name, adapter.missing is None, adapter.version, (), str(e)))
    return lines


def versions(subjects: Iterable[Anything]) -> dict[str, str]:
    """The versions of what the subjects run on, by distribution name, sorted.

    For a user's own subject: of every built-in framework that is installed, since nothing tells which of them it uses,
    and what this process has imported depends on how the work is dealt out. Imports nothing.
    """
    return {dist: found for dist in reported(subjects) if (found := _version(dist)) is not None}


def reported(subjects: Iterable[Anything]) -> list[str]:
    """The distributions that tell what the subjects run on, installed or not, sorted; see :func:`versions`."""
    known = adapters()
    found: set[str] = set()
    for name in {subject.adapter for subject in subjects}:
        if name not in known:
            found.update(dist for a in BUILT_IN for dist in a.reports)
        elif (entry := known[name].entry) is not None:
            found.update([entry.dist.name] if entry.dist is not None else [])
        else:
            found.update(known[name].reports)
    return sorted(found)


def resolve(targets: Sequence[str], *, specimens: bool = False) -> list[Subject]:
    """The masked softmaxes that the targets name, in order, each once.

    A target is an adapter's name (``torch``), a subject's id, a glob over ids (``torch.*``; only ``*`` and ``?`` are
    special), ``path/file.py:object`` or ``module:object`` (see :mod:`hardmask.adapters.user_code`). A specimen is
    returned if an id, a glob or an object names it, or with ``specimens=True``; a subject that one opts in to, only if
    an id, a glob or an object names it. A glob over several adapters
    (``*.softmax-where*``) looks at those whose framework is installed.

    Raises TargetError, one sentence with the mend, for whatever goes wrong, and when only attention is named.

    >>> [s.id for s in resolve(["numpy.softmax-where"])]
    ['numpy.softmax-where']
    """
    found = resolve_all(targets, specimens=specimens)
    rows = [s for s in found if isinstance(s, Subject)]
    if found and not rows:
        raise TargetError(
            f"'{found[0].id}' is an attention, and this command takes masked softmaxes. Name one of those, or a "
            "subject whose id ends in 'rows]', which is the softmax inside an attention."
        )
    return rows


def resolve_all(targets: Sequence[str], *, specimens: bool = False) -> list[Anything]:
    """The masked softmaxes and masked attentions that the targets name, as :func:`resolve` finds them.

    Raises TargetError.
    """
    found: dict[str, Anything] = {}
    for target in targets:
        for subject in _one(target, specimens):
            if found.setdefault(subject.id, subject) is not subject:
                raise one_name_twice(subject.id)
    return list(found.values())


def owners(target: str) -> tuple[str, ...]:
    """The names of the adapters among whose subjects a target looks; none for a user's own code. Imports nothing.

    Raises TargetError for a target that names nothing.

    >>> owners("numpy.softmax-where"), owners("mine.py:softmax")
    (('numpy',), ())
    """
    if ":" in target:
        return ()
    known = adapters()
    if target in known:
        return (target,)
    if target.endswith(".py"):
        raise TargetError(f"'{target}' names a file but no object in it. Write '{target}:NAME'.")
    prefix = target.partition(".")[0]
    if prefix in known:
        return (prefix,)
    if re.search("[*?]", prefix):
        # 'tor*' may stand for 'torch.…': compare as much of the adapter's name as the pattern fixes.
        head = re.split("[*?]", prefix)[0]
        return tuple(a.name for a in known.values() if a.name.startswith(head) and not a.missing)
    raise _unknown(target, list(known))


def resolve_within(target: str, adapter: str | None, *, specimens: bool = False) -> list[Anything]:
    """What a target names among the subjects of one adapter, or, without one, in the user's own code.

    A pattern may name nothing there; a target without one that does raises TargetError.
    """
    return _named(target, () if adapter is None else (adapter,), specimens)


def nothing_matches(target: str) -> TargetError:
    """The error of a pattern that names nothing anywhere."""
    return TargetError(f"No subject matches '{target}'. Run 'hardmask list' to see the ids.")


def one_name_twice(id: str) -> TargetError:
    """The error of two subjects that nothing tells apart."""
    return TargetError(f"Two different subjects are called '{id}'. Rename one, or run them one after the other.")


def _one(target: str, specimens: bool) -> list[Anything]:
    names = owners(target)
    found = _named(target, names, specimens)
    if not found and re.search("[*?]", target):
        raise nothing_matches(target)
    return found


def _named(target: str, names: tuple[str, ...], specimens: bool) -> list[Anything]:
    if ":" in target:
        return _with_rows(subjects_of(target))
    known = adapters()
    if (target,) == names:
        return [s for s in known[target].load() if (specimens or s.role != "specimen") and not s.opt_in]
    pattern = target.replace("[", "[[]")
    pool = [s for name in names for s in known[name].load()]
    matches = [s for s in pool if s.id == target] or [s for s in pool if fnmatchcase(s.id, pattern)]
    if matches or re.search("[*?]", target):
        return matches
    raise _unknown(target, [s.id for s in pool])


def _unknown(target: str, names: Iterable[str]) -> TargetError:
    close = get_close_matches(target, list(names), 3)
    hint = f"Did you mean {' or '.join(repr(c) for c in close)}?" if close else "Run 'hardmask list' to see them all."
    return TargetError(f"There is no target '{target}'. {hint}")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def _load(adapter: Adapter) -> tuple[Anything, ...]:
    try:
        if adapter.entry is None:
            built_in = [s for m in adapter.modules for s in import_module(m, __package__).subjects()]
            recipes = import_module(f".{adapter.name}_recipes", __package__).RECIPES
            return tuple(_with_rows(replace(s, recipe=recipes.get(s.id)) for s in built_in))
        found = adapter.entry.load()
    except (TargetError, KeyboardInterrupt):
        raise
    except BaseException as e:  # a stray sys.exit() must not end the run as if it had certified something
        raise TargetError(
            f"Loading the adapter '{adapter.name}' raised {said(e)}. "
            f"{adapter.mend or 'Mend or uninstall the package that registers it.'}"
        ) from e
    subjects = as_subjects(found, name=f"{adapter.name}.softmax", origin=f"The entry point '{adapter.name}'")
    for subject in subjects:
        if not subject.id.startswith(f"{adapter.name}."):
            raise TargetError(
                f"The adapter '{adapter.name}' offers a subject called '{subject.id}', which a target could not name. "
                f"Its id has to begin with '{adapter.name}.'."
            )
    return tuple(s if s.adapter == adapter.name else replace(s, adapter=adapter.name) for s in _with_rows(subjects))


def _with_rows(subjects: Iterable[Anything]) -> list[Anything]:
    """The subjects, and behind them the masked softmaxes inside those attentions that declare one."""
    found = list(subjects)
    return [*found, *(rows_through(s) for s in found if isinstance(s, Attention) and s.rows)]
