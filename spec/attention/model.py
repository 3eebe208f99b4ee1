"""A declared rounding model of an attention kernel: which format each step is rounded to, and how well."""

from __future__ import annotations

from dataclasses import dataclass

from ..formats import Format
from ..rounding.model import RoundingModel


@dataclass(frozen=True)
class AttentionModel:
    """How one kernel rounds, for one storage format.

    - ``softmax``: the masked softmax inside, with its format of elementwise operations, its exp (``alpha``) and how
      exponents are formed. Its results are not stored: its storage format is its compute format.
    - ``storage``: the format of inputs and results. Every result is rounded to it once.
    - ``accumulate``: the format of the elementwise work on matrices and of the sums inside products of matrices.
    - ``inputs``: relative rounding of the inputs of every product of matrices, ``2^-11`` for TF32.
    - ``intermediate``: a format that scores, ``dA``, ``dS`` and their scaled forms are rounded to, because they are
      materialised in it; None if they stay in ``accumulate``.
    - ``cast``: a format that weights and ``dS`` are rounded to before they are multiplied by matrices, None if they are
      not.
    - ``tile``: an online softmax over tiles of at least so many keys, 0 for a materialised one. Numerators, sums and
      the output are rescaled at most once per tile, by an exponential with the error ``rescale_alpha``, in u. The
      backward pass may rebuild the weights as ``exp(s - L)`` from a stored log-sum-exp ``L``.
    - ``query_block``, ``key_block``: gradients of keys and values are added up in the storage format once per so many
      queries (that of queries once per so many keys), 0 if only the complete sum is rounded.
    """

    softmax: RoundingModel
    storage: Format
    accumulate: Format
    inputs: float = 0.0
    intermediate: Format | None = None
    cast: Format | None = None
    tile: int = 0
    rescale_alpha: float = 4.0
    query_block: int = 0
    key_block: int = 0

    @property
    def u(self) -> float:
        """Unit roundoff of the elementwise work on matrices."""
        return self.accumulate.u
