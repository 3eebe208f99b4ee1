"""The floating-point checks of attention, and which declarations each of them serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..judgement import Judged
from ..view import AttentionView
from . import pairing, promises, relations, values

CHECKS: tuple[Callable[[AttentionView], Iterator[Judged]], ...] = (
    values.check,
    pairing.check,
    promises.check,
)
"""What is asked of every problem; :mod:`.relations` is asked of a few."""

SERVED_BY: dict[str, tuple[str, ...]] = {
    "scaledDotProductAttention": ("forward",),
    "scaledDotProductAttentionBackward": ("vjp",),
    "scaledDotProductAttentionJvp": ("jvp",),
    values.ALL_TRUE["forward"]: ("forward",),
    values.ALL_TRUE["vjp"]: ("vjp",),
    values.ALL_TRUE["jvp"]: ("jvp",),
    values.BLOCKED: ("forward",),
    "unstack_hardMaskedSoftmaxSpec": ("forward",),
    "unstack_softmaxBackwardFromWeightsSpec": ("vjp",),
    pairing.NAME: ("vjp+jvp",),
    "attention_differentiability": ("vjp", "jvp"),
    values.APART: ("forward",),
    values.GRADIENTS_APART: ("vjp", "jvp"),
    values.UNSEEN: ("vjp",),
    values.EMPTY: ("forward",),
    "path_agreement": ("forward",),
    relations.BATCH: ("forward",),
    relations.PREFIX: ("forward",),
    relations.PADDING: ("forward",),
    promises.ISOLATION: ("forward",),
    promises.VISIBLE: ("forward",),
}
"""Declaration key -> the methods that decide it: any one of those listed, or both of ``vjp+jvp``."""
