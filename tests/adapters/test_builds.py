"""What a framework tells about its build and settings, in this process and through a worker."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.builds import FACTS, builds
from hardmask.adapters.registry import resolve_all
from hardmask.adapters.remote import Options, source_of
from hardmask.conformance.frameworks import Frameworks


def test_every_fact_of_numpy_is_told() -> None:
    assert builds(["numpy"])["numpy"].keys() == FACTS["numpy"].keys()
    assert builds(["numpy"])["numpy"]["version"] == np.__version__
    assert builds(["no-such-framework"]) == {}


@pytest.mark.torch
def test_the_threads_and_the_precision_of_torch_are_those_that_are_set() -> None:
    import torch

    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high")
        told = builds(["torch"])["torch"]
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
    assert told.keys() == FACTS["torch"].keys()
    assert (told["threads"], told["float32_matmul_precision"]) == ("1", "high")


@pytest.mark.jax
def test_the_settings_of_jax_are_told() -> None:
    import jax

    told = builds(["jax"])["jax"]
    assert told["enable_x64"] == str(jax.config.jax_enable_x64)
    assert told["devices"]


def test_what_a_release_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bare: Any = ModuleType("torch")
    bare.__version__ = "0.1"
    monkeypatch.setitem(__import__("sys").modules, "torch", bare)
    assert builds(["torch"]) == {"torch": {"version": "0.1"}}


def test_a_worker_tells_the_same() -> None:
    here = Frameworks.of(resolve_all(["numpy.softmax-where"]), source_of(["numpy.softmax-where"]))
    there = source_of(["numpy.softmax-where"], options=Options())
    try:
        through = Frameworks.of(there.subjects, there)
    finally:
        there.close()
    assert (here.in_process, through.in_process) == (True, False)
    assert here.builds["numpy"] == through.builds["numpy"]
    assert here.versions == through.versions
