"""Digests of what was returned, bit for bit, that merge in any order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..spec.batch import Array

SPACE = 1 << 256


@dataclass(frozen=True)
class Bits:
    """The sum modulo 2^256 of the SHA-256 digests of several answers, how many they are, and their rows.

    A sum does not depend on the order in which processes deliver their parts. Each digest covers the name of the batch,
    so that equal answers to different batches do not cancel or change places unnoticed.

    >>> a, b = Bits.of("one", np.ones((2, 3), np.float32)), Bits.of("two", np.zeros((1, 3), np.float32))
    >>> (a + b).hexadecimal == (b + a).hexadecimal, (a + b).rows
    (True, 3)
    """

    total: int = 0
    batches: int = 0
    rows: int = 0

    @classmethod
    def of(cls, name: str, array: Array) -> Bits:
        """The digest of one answer: the batch's name, the dtype, the shape, and the bytes in C order, little-endian."""
        array = np.ascontiguousarray(array)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        head = f"{name}\n{array.dtype.name}\n{'x'.join(map(str, array.shape))}\n".encode()
        digest = hashlib.sha256(head)
        digest.update(array.view(np.uint8).data if array.size else b"")
        rows = int(np.prod(array.shape[:-1]))
        return cls(int.from_bytes(digest.digest(), "big"), 1, rows)

    def __add__(self, other: Bits) -> Bits:
        """Both."""
        return Bits((self.total + other.total) % SPACE, self.batches + other.batches, self.rows + other.rows)

    @property
    def hexadecimal(self) -> str:
        """The sum as 64 hexadecimal digits."""
        return f"{self.total:064x}"
