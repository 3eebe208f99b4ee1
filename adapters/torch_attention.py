"""Every masked attention of PyTorch that hardmask judges, on the CPU."""

from __future__ import annotations

from . import torch_attention_compiled, torch_encoder, torch_flex, torch_mha, torch_sdpa
from .attention import Attention

MODULES = (torch_sdpa, torch_mha, torch_encoder, torch_flex, torch_attention_compiled)


def subjects() -> list[Attention]:
    """All subjects, specimens included; opt-in ones compile only when they are called."""
    return [s for module in MODULES for s in module.subjects()]
