"""The floating-point formats that a subject may store or compute in.

A format is described by its precision ``p`` (bits of the significand, the hidden one included) and its smallest normal
exponent ``emin``; everything the rounding analysis needs follows from these two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary floating-point format with round to nearest.

    >>> FORMATS["float32"].u == 2.0**-24
    True
    """

    name: str
    precision: int
    emin: int

    @cached_property
    def u(self) -> float:
        """Unit roundoff: the largest relative error of one rounding of a normal result."""
        return 2.0**-self.precision

    @cached_property
    def lam(self) -> float:
        """Smallest positive normal number."""
        return 2.0**self.emin

    @cached_property
    def eta(self) -> float:
        """Smallest positive subnormal number."""
        return 2.0 ** (self.emin - self.precision + 1)

    @cached_property
    def max(self) -> float:
        """Largest finite number."""
        return float((2.0 - 2.0 ** (1 - self.precision)) * 2.0 ** (1 - self.emin))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype that stores this format.

        ``ml_dtypes`` supplies bfloat16. It is imported here, since it takes half a second and an interpreter that only
        runs a framework may be without it.
        """
        if self.name != "bfloat16":
            return np.dtype(self.name)
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float64", 53, -1022),
        Format("float32", 24, -126),
        Format("float16", 11, -14),
        Format("bfloat16", 8, -126),
    )
}

DTYPES: tuple[str, ...] = tuple(FORMATS)

HALVES: frozenset[str] = frozenset({"float16", "bfloat16"})
"""The 16-bit formats: a backend may compute these in float32."""
