"""What all tests share: how a missing framework is treated, and how hypothesis searches."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable

import pytest
from hypothesis import settings

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FRAMEWORKS = ("torch", "jax", "flax", "onnxruntime")
IN_CI = os.environ.get("CI", "").lower() in ("true", "1")

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "local")


def require(framework: str) -> None:
    """Skip the running test where the framework is absent; fail it there in CI, which must judge every backend."""
    if importlib.util.find_spec(framework) is not None:
        return
    if IN_CI:
        pytest.fail(
            f"CI must test {framework}, and it is not installed. Run 'make test', which installs it.", pytrace=False
        )
    pytest.skip(f"{framework} is not installed; 'make test' installs it")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser; without one the test is skipped, and fails in CI."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if IN_CI:
            pytest.fail("CI must look at the pages in Chromium, and it is not installed.", pytrace=False)
        pytest.skip("Chromium is not installed")
    return found


def pytest_runtest_setup(item: pytest.Item) -> None:
    for framework in FRAMEWORKS:
        if item.get_closest_marker(framework) is not None:
            require(framework)


@pytest.fixture(scope="session", name="require")
def require_fixture() -> Callable[[str], None]:
    """:func:`require`, for a test that learns only while it runs which framework it needs."""
    return require
