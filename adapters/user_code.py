"""Subjects from a user's own file or module: ``path/file.py:object`` and ``module:object``.

What the object may be:

- a :class:`~hardmask.adapters.subject.Subject` or an :class:`~hardmask.adapters.attention.Attention`, or a list or
  tuple of them;
- a function that can be called with no argument: a *factory*, called once, that returns one of the above;
- any other function that takes two positional arguments: the masked softmax itself, ``f(scores, mask) -> weights``
  over NumPy arrays of shape ``(rows, keys)``, True = allowed. It becomes a forward-only subject called
  ``file-stem.function-name``, judged in float32 and float64 under the contract ``zero``.

The number of required arguments alone tells the two kinds of function apart; a masked softmax whose arguments all have
defaults is therefore taken for a factory, and has to be wrapped in a Subject.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from .attention import Attention
from .errors import TargetError, said
from .subject import Subject

FORWARD_ONLY = "A plain function has no derivative; wrap it in a Subject with {method}= to have one judged."


def subjects_of(target: str) -> list[Subject | Attention]:
    """The subjects that ``path/file.py:object`` or ``module:object`` names, in order.

    Raises TargetError when the file, the module or the object is not there, when importing it raises, or when the
    object is nothing that can be judged.
    """
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise TargetError(f"'{target}' names no object. Write 'file.py:object' or 'module:object'.")
    module = _file(where) if where.endswith(".py") else _module(where)
    try:
        found = getattr(module, name)
    except AttributeError:
        # Not the modules and numbers beside them: only what the object may be.
        usable = [n for n, v in vars(module).items() if callable(v) or isinstance(v, (Subject, Attention, list, tuple))]
        names = [n for n in usable if not n.startswith("_")]
        close = get_close_matches(name, names, 1)
        hint = f"Did you mean '{close[0]}'?" if close else "Check the name after the colon."
        raise TargetError(f"'{where}' defines no '{name}'. {hint}") from None
    stem = Path(where).stem if where.endswith(".py") else where.rpartition(".")[2]
    return as_subjects(found, name=f"{stem}.{name}", origin=f"'{name}' in '{where}'")


def as_subjects(found: Any, *, name: str, origin: str) -> list[Subject | Attention]:
    """Turn a Subject, a list of them, a factory or a plain function into a list of subjects.

    ``name`` is the id that a plain function gets, ``origin`` how messages speak of the object. Raises TargetError.
    """
    listed = _listed(found, origin)
    if listed is not None:
        return listed
    if not callable(found):
        raise TargetError(
            f"{origin} is of type {type(found).__name__}, which cannot be judged. "
            "Give a Subject, a list of Subjects, or a function f(scores, mask)."
        )
    kind = _kind(found)
    if kind == "plain":
        reasons = {method: FORWARD_ONLY.format(method=method) for method in ("vjp", "jvp")}
        return [Subject("-".join(name.split()), found, unsupported=reasons)]
    if kind == "neither":
        raise TargetError(
            f"{origin} takes {inspect.signature(found)}, so it is neither f(scores, mask) nor a function without "
            "arguments that returns Subjects. Give it one of these signatures."
        )
    try:
        made = found()
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # a stray sys.exit() must not end the run as if it had certified something
        raise TargetError(
            f"{origin} takes no argument, so it was called to get Subjects, and raised {said(e)}. "
            "Mend it, or give a function f(scores, mask)."
        ) from e
    listed = _listed(made, f"What {origin} returned")
    if listed is None:
        raise TargetError(
            f"{origin} takes no argument and returned {type(made).__name__}. "
            "Return a Subject or a list of Subjects, or give a function f(scores, mask)."
        )
    return listed


def _listed(found: Any, origin: str) -> list[Subject | Attention] | None:
    if isinstance(found, (Subject, Attention)):
        return [found]
    if not isinstance(found, (list, tuple)):
        return None
    if not found:
        raise TargetError(f"{origin} is an empty list. Put at least one Subject into it.")
    for item in found:
        if not isinstance(item, (Subject, Attention)):
            raise TargetError(
                f"{origin} is a list that holds a {type(item).__name__}. Wrap every item in a Subject or an Attention."
            )
    return list(found)


def _kind(function: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "plain"  # A compiled function tells nothing; a factory would be written in Python.
    for kind, args in (("factory", ()), ("plain", (None, None))):
        try:
            signature.bind(*args)
        except TypeError:
            continue
        return kind
    return "neither"


def _file(where: str) -> ModuleType:
    path = Path(where).resolve()
    if not path.is_file():
        raise TargetError(f"There is no file '{where}'. Check the path, which is read from '{Path.cwd()}'.")
    # One name per state of the file: two targets in one file share one module, and an edited file is read anew.
    state = f"{path} {path.stat().st_mtime_ns}"
    name = f"hardmask_target_{hashlib.sha256(state.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # A path that ends in .py always has a loader.
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _importing(where, path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module(where: str) -> ModuleType:
    with _importing(where, Path.cwd()):
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{where}.".startswith(f"{e.name}."):
                raise
            raise TargetError(
                f"There is no module '{where}' on the import path. "
                "Install it, run from its folder, or name the file as 'path/file.py:object'."
            ) from None


@contextmanager
def _importing(where: str, folder: Path) -> Iterator[None]:
    """Let the code being imported see its neighbours, as a script does, and turn its failures into a sentence."""
    sys.path.insert(0, str(folder))
    try:
        yield
    except (TargetError, KeyboardInterrupt):
        raise
    except BaseException as e:
        raise TargetError(f"Importing '{where}' raised {said(e)}. Mend the code, or install what it needs.") from e
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
