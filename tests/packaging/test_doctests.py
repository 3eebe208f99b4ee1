"""Every module of the installed packages imports, and its examples run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Callable, Iterator

import pytest

import hardmask.adapters
import hardmask.conformance
import hardmask.spec

FRAMEWORKS = ("torch", "jax", "flax", "onnx", "onnxruntime")


def modules() -> Iterator[str]:
    for package in (hardmask.spec, hardmask.adapters, hardmask.conformance):
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith(".__main__"):  # importing it would run the command
                yield module.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name: str, require: Callable[[str], None]) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in FRAMEWORKS:
            require(error.name)
        raise
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0, f"{result.failed} of the {result.attempted} examples of {name} failed; see the output."


def test_walk_finds_modules_and_their_examples() -> None:
    """A walk that finds nothing would let every example rot."""
    found = set(modules())
    assert {"hardmask.spec.definitions", "hardmask.spec.oracle.exact", "hardmask.adapters.subject"} <= found
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for test in finder.find(hardmask.adapters.subject) if test.examples]
    assert examples
