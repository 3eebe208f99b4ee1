"""Arrays cross between NumPy and PyTorch bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.spec.formats import DTYPES, FORMATS

pytestmark = pytest.mark.torch

EVERY_PATTERN = np.arange(2**16, dtype=np.uint16)
BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def there_and_back(array: np.ndarray) -> np.ndarray:
    from hardmask.adapters.torch_arrays import to_numpy, to_torch

    tensor = to_torch(array)
    assert str(tensor.dtype) == f"torch.{array.dtype.name if array.dtype != bool else 'bool'}"
    assert tuple(tensor.shape) == array.shape
    return to_numpy(tensor)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_half(dtype: str) -> None:
    array = EVERY_PATTERN.view(FORMATS[dtype].dtype)
    back = there_and_back(array)
    assert back.dtype == array.dtype
    assert (back.view(np.uint16) == EVERY_PATTERN).all()


def test_every_bfloat16_means_the_same_number() -> None:
    from hardmask.adapters.torch_arrays import to_torch

    array = EVERY_PATTERN.view(FORMATS["bfloat16"].dtype)
    here, there = array.astype(np.float32), to_torch(array).float().numpy()
    same = (here == there) | (np.isnan(here) & np.isnan(there))
    assert same.all()
    assert np.isnan(here).sum() == 2 * 127


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singles_and_doubles(dtype: str) -> None:
    kind = FORMATS[dtype].dtype
    bits = np.random.default_rng(0).integers(0, 2 ** (8 * kind.itemsize), 10**5, dtype=BITS[kind.itemsize])
    array = bits.view(kind)
    assert np.isnan(array).any()
    assert (there_and_back(array).view(BITS[kind.itemsize]) == bits).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (4, 6)])
def test_any_shape_and_layout(dtype: str, shape: tuple[int, int]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(FORMATS[dtype].dtype)
    for view in (array, array.T, array[::-1, ::2]):
        back = there_and_back(view)
        assert back.shape == view.shape
        assert (back == view).all()


def test_a_read_only_array_is_copied_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    from hardmask.adapters.torch_arrays import to_torch

    array = np.zeros(3)
    array.flags.writeable = False
    to_torch(array)[0] = 1
    assert array[0] == 0
    assert not recwarn.list


def test_a_mask_stays_boolean() -> None:
    assert there_and_back(np.array([True, False])).tolist() == [True, False]
