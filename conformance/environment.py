"""What a run ran on: enough to tell two runs apart, and nothing that names a person or a machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

OWN = ("numpy", "ml_dtypes", "mpmath", "sympy", "python-flint", "msgspec")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(frameworks: dict[str, str], referee: str) -> dict[str, Any]:
    """Versions, platform and the knobs that change results."""
    from ..adapters.builds import builds  # with NumPy, which counting processors does not need

    libraries = {}
    for name in OWN:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    knobs = (
        "OMP_WAIT_POLICY",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "XLA_FLAGS",
        "JAX_ENABLE_X64",
        "JAX_PLATFORMS",
        "NPY_DISABLE_CPU_FEATURES",
    )
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": builds(["numpy"])["numpy"].get("cpu_features", ""),
        "byteorder": sys.byteorder,
        "processors": os.cpu_count(),
        "frameworks": dict(sorted(frameworks.items())),
        "libraries": libraries,
        "referee": referee,
        "settings": {k: os.environ[k] for k in knobs if k in os.environ},
    }
