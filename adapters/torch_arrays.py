"""NumPy arrays to PyTorch tensors and back, bit for bit, bfloat16 included."""

from __future__ import annotations

import numpy as np
import torch

from ..spec.formats import FORMATS
from .subject import Array


def to_torch(array: Array) -> torch.Tensor:
    """A CPU tensor with a copy of the array: the same shape and bits, NaN payloads included.

    Any Boolean or floating NumPy dtype that PyTorch has, and ``ml_dtypes.bfloat16``, which NumPy and PyTorch can only
    exchange as 16-bit integers.

    >>> to_torch(np.ones(2, np.float16))
    tensor([1., 1.], dtype=torch.float16)
    """
    copied = np.array(array, order="C")  # PyTorch warns about arrays that it must not write to.
    if copied.dtype.name == "bfloat16":
        return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(copied)


def over(array: Array) -> torch.Tensor:
    """A CPU tensor over the array's own memory, strides and all; a copy where PyTorch has no such tensor.

    It has none with negative strides, and none that may not be written to.

    >>> over(np.zeros((2, 4), np.float32)[:, ::2]).stride()
    (4, 2)
    """
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        return to_torch(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> Array:
    """The inverse of :func:`to_torch`, for a tensor that may still hang on an autograd graph."""
    flat = tensor.detach().cpu().contiguous()
    result: Array
    if flat.dtype == torch.bfloat16:
        result = flat.view(torch.int16).numpy().view(FORMATS["bfloat16"].dtype)
    else:
        result = flat.numpy()
    return result
