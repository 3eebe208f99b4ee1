"""What build of each framework runs here, and the settings of this process that change its results.

Nothing is imported: a framework that no subject has loaded has no build to tell. Everything is text, so that two
certificates can be compared field by field, and nothing names a machine or a person.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np

from .errors import printable

LONGEST = 4000
"""Characters of one fact, at most."""

TINY = np.float32(1e-40)
"""A subnormal number: 0 where the processor flushes such numbers."""


def builds(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The build and the settings of those of the named frameworks that this process has loaded.

    A setting that a release does not tell is left out.

    >>> sorted(builds(["numpy"])["numpy"])
    ['blas', 'cpu_features', 'subnormals', 'version']
    """
    wanted = set(names)
    found = {}
    for name, facts in FACTS.items():
        module = sys.modules.get(name)
        if name in wanted and module is not None:
            told = {key: _told(tell, module) for key, tell in facts.items()}
            found[name] = {key: text for key, text in sorted(told.items()) if text is not None}
    return found


def _told(tell: Callable[[Any], Any], module: ModuleType) -> str | None:
    with suppress(Exception):  # an older or a newer release may not have the attribute
        answer = tell(module)
        return None if answer is None else printable(" ".join(str(answer).split()), LONGEST)
    return None


def _blas(numpy: Any) -> str:
    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def _cpu_features(numpy: Any) -> str:
    features: dict[str, bool] = numpy._core._multiarray_umath.__cpu_features__
    return " ".join(sorted(name for name, there in features.items() if there))


def _subnormals(multiply: Callable[[Any], Any]) -> str:
    return "kept" if float(multiply(TINY)) != 0.0 else "flushed"


def _torch_build(torch: Any) -> str:
    return ", ".join(line.strip(" -") for line in torch.__config__.show().splitlines() if "Build settings" not in line)


def _jax_devices(jax: Any) -> str:
    return ", ".join(sorted({f"{d.platform} {d.device_kind}" for d in jax.devices()}))


FACTS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "numpy": {
        "version": lambda numpy: numpy.__version__,
        "blas": _blas,
        "cpu_features": _cpu_features,
        "subnormals": lambda numpy: _subnormals(lambda x: numpy.multiply(numpy.full(64, x), numpy.float32(1))[63]),
    },
    "torch": {
        "version": lambda torch: torch.__version__,
        "revision": lambda torch: torch.version.git_version,
        "build": _torch_build,
        "cpu_capability": lambda torch: torch.backends.cpu.get_cpu_capability(),
        "threads": lambda torch: torch.get_num_threads(),
        "interop_threads": lambda torch: torch.get_num_interop_threads(),
        "float32_matmul_precision": lambda torch: torch.get_float32_matmul_precision(),
        "deterministic_algorithms": lambda torch: torch.are_deterministic_algorithms_enabled(),
        "mkldnn": lambda torch: torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
        "cuda": lambda torch: torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "subnormals": lambda torch: _subnormals(lambda x: torch.full((64,), float(x)).mul(1.0)[63]),
    },
    "jax": {
        "version": lambda jax: jax.__version__,
        "devices": _jax_devices,
        "platform_version": lambda jax: jax.devices()[0].client.platform_version,
        "enable_x64": lambda jax: jax.config.jax_enable_x64,
        "default_matmul_precision": lambda jax: jax.config.jax_default_matmul_precision,
        "subnormals": lambda jax: _subnormals(lambda x: jax.numpy.multiply(jax.numpy.full(64, x), 1)[63]),
    },
    "jaxlib": {"version": lambda jaxlib: jaxlib.__version__},
    "flax": {"version": lambda flax: flax.__version__},
    "onnx": {"version": lambda onnx: onnx.__version__},
    "onnxruntime": {
        "version": lambda onnxruntime: onnxruntime.__version__,
        "build": lambda onnxruntime: onnxruntime.get_build_info(),
        "device": lambda onnxruntime: onnxruntime.get_device(),
        "providers": lambda onnxruntime: ", ".join(onnxruntime.get_available_providers()),
    },
}
"""For each framework, how to tell each fact."""
