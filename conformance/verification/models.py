"""The rounding models that the words of a certificate name: tiers, and tiers with changes."""

from __future__ import annotations

from functools import lru_cache

from ...spec.attention.model import AttentionModel
from ...spec.attention.tiers import TIERS as ATTENTION_TIERS
from ...spec.attention.tiers import canonical as attention_canonical
from ...spec.attention.tiers import model as attention_model
from ...spec.rounding import TIERS, RoundingModel, canonical, model
from ...spec.rounding.custom import CHANGEABLE, customised
from ..document import SubjectRecord

WITH = " with "
METHODS = ("forward", "vjp", "jvp")


@lru_cache(maxsize=256)
def model_of(words: str, dtype: str) -> RoundingModel | None:
    """The model of a tier as a finding names it, changes included; None for words that name none.

    >>> model_of("strict with alpha=20.0, online=True", "float32").alpha
    20.0
    >>> model_of("generous", "float32") is None
    True
    """
    tier, _, changes = words.partition(WITH)
    if tier not in TIERS:
        return None
    if not changes:
        return model(tier, dtype)
    made: dict[str, object] = {}
    for change in changes.split(", "):
        name, _, value = change.partition("=")
        kind = CHANGEABLE.get(name)
        try:
            if kind is bool:
                made[name] = {"True": True, "False": False}[value]
            elif kind is str:
                made[name] = value
            else:
                made[name] = int(value) if kind is int else float(value)
        except (KeyError, ValueError):
            return None
    try:
        return customised(tier, dtype, made)
    except ValueError:
        return None


def attention_model_of(words: str, dtype: str) -> AttentionModel | None:
    """The model of a tier of attention; None for words that name none."""
    return attention_model(words, dtype) if words in ATTENTION_TIERS else None


def tiers_of(subject: SubjectRecord, dtype: str, method: str) -> tuple[str, ...]:
    """The words by which a subject's method may be judged in a dtype: along the last axis, and along others.

    Empty where the record names none.
    """
    declared = subject.tier.get(f"{method}:{dtype}")
    if declared is None:
        return ()
    if subject.operation != "masked-softmax":
        return (attention_canonical(declared, dtype),) if declared in ATTENTION_TIERS else ()
    if declared not in TIERS:
        return ()
    half = ("half",) if dtype in ("float16", "bfloat16") else ()
    keys = [f"{method}:{dtype}", *(f"{method}:{h}" for h in half), dtype, *half]
    other = next((subject.tier_other_axis[k] for k in keys if k in subject.tier_other_axis), declared)
    custom = subject.custom.get(f"{method}:{dtype}")
    changes = f"{WITH}{custom.changes}" if custom else ""
    found = [canonical(t, dtype) + changes for t in (declared, other) if t in TIERS]
    return tuple(dict.fromkeys(found))
