"""Whether three blocked keys, appended, change the bits of JAX's attention. Needs JAX and NumPy, and no hardmask."""

import jax
import numpy as np

attend = jax.jit(lambda q, k, v, mask: jax.nn.dot_product_attention(q, k, v, mask=mask))
rng = np.random.default_rng(0)
same = total = 0
for _ in range(40):
    q = rng.standard_normal((2, 5, 2, 4)).astype(np.float32)
    k, v = (rng.standard_normal((2, 7, 2, 4)).astype(np.float32) for _ in range(2))
    mask = rng.random((2, 2, 5, 7)) < 0.7
    mask[..., 0] = True
    more_k, more_v = (np.concatenate([x, 8 * x[:, :1].repeat(3, 1)], axis=1) for x in (k, v))
    more_mask = np.concatenate([mask, np.zeros((2, 2, 5, 3), bool)], axis=3)
    plain, padded = np.asarray(attend(q, k, v, mask)), np.asarray(attend(q, more_k, more_v, more_mask))
    same += int((plain.view(np.uint32) == padded.view(np.uint32)).sum())
    total += plain.size
print(f"jax {jax.__version__}: {same} of {total} outputs have the same bits")
