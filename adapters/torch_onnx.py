"""PyTorch's export of scaled_dot_product_attention to ONNX."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch


class Attend(torch.nn.Module):  # type: ignore[misc]  # PyTorch's types are not read
    """One call, with the default scale."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The output; a causal module does not look at the mask."""
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, None if self.causal else mask, is_causal=self.causal
        )


def export(dtype: str, opset: int, causal: bool) -> Any:
    """The model that ``torch.onnx.export`` makes, with inputs ``q``, ``k``, ``v`` and ``mask`` of any sizes."""
    kind = getattr(torch, dtype)
    # Sizes differ from each other, or the exporter takes those that are alike for one.
    tensors = [torch.zeros(shape, dtype=kind) for shape in ((3, 4, 5, 8), (3, 4, 7, 8), (3, 4, 7, 6))]
    mask = torch.ones(3, 4, 5, 7, dtype=torch.bool)
    open_ = dict.fromkeys(range(4), torch.export.Dim.DYNAMIC)
    with _quiet():
        program = torch.onnx.export(
            Attend(causal),
            (*tensors, mask),
            dynamo=True,
            dynamic_shapes=(open_,) * 4,
            opset_version=opset,
            verbose=False,
        )
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes on what else could be installed."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
