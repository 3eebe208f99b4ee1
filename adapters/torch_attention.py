"""Every masked attention of PyTorch that hardmask judges, on the CPU."""

from __future__ import annotations

from . import torch_mha, torch_sdpa
from .attention import Attention


def subjects() -> list[Attention]:
    """All subjects, specimens included; opt-in ones compile only when they are called."""
    return [*torch_sdpa.subjects(), *torch_mha.subjects()]
