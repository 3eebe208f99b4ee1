"""The fingerprint of a masked attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...adapters.attention import Attention
from ...adapters.errors import said
from ...spec.attention.problem import Alignment, Problem
from ...spec.batch import Array, Floats
from ..attention.masks import causal
from ..calls import Fault
from . import policy
from .attention_isolation import ask, attention_isolation
from .layouts import Pattern, arranged, problem, width
from .probe import (
    EMPTY,
    FULL,
    KEYS,
    PARTIAL,
    SCORES,
    Errors,
    first_leak,
    inverted,
    offered,
)
from .record import EmptyRow, Fingerprint

OUTPUT_NAMES = {"uniform": "mean of V", "weight 1 each": "sum of V", "one key": "one value"}
"""What the names of weights are called where only the output is seen."""

UNREACHABLE = "unreachable"
"""Of a row that the kernel cannot be given, such as an empty one under a causal flag that leaves none."""


def fingerprint_attention(subject: Attention, dtype: str) -> Fingerprint:
    """Probe one subject in one dtype.

    >>> def attend(q, k, v, mask, scale):
    ...     s = np.where(mask, scale * (q @ np.swapaxes(k, -1, -2)), -1e9)
    ...     e = np.exp(s - s.max(axis=-1, keepdims=True))
    ...     return (e / e.sum(axis=-1, keepdims=True) @ v).astype(q.dtype)
    >>> found = fingerprint_attention(Attention("mine.attention", attend), "float32")
    >>> found.mask, found.empty_row.forward, found.reading
    ('allowed', 'mean of V', 'replacement')
    """
    return _Probe(subject, dtype).fingerprint()


class _Probe:
    def __init__(self, subject: Attention, dtype: str) -> None:
        self.subject, self.dtype = subject, dtype
        self.errors = Errors()
        self.causal = ""

    def fingerprint(self) -> Fingerprint:
        s = self.subject
        common: dict[str, Any] = {
            "subject": s.id,
            "adapter": s.adapter,
            "operation": s.operation,
            "path": s.path,
            "role": s.role,
            "dtype": self.dtype,
            "encoding": s.encoding,
            "group": s.group,
            "kernel": s.kernel,
            "ran": self._ran(),
            "declared_contract": s.contract,
            "declared_mask": s.convention,
            "derivatives": offered(s),
        }
        if width(s, KEYS) is None:
            sentence = f"{s.id} takes no head of a width from {KEYS} to 256, which the probes need."
            return Fingerprint(**common, empty_row=EmptyRow(forward="error"), errors=[sentence])
        if s.encoding == "causal":
            self.causal = self._alignment()
        weight, mask = self._partial()
        if mask == "blocked" and s.encoding not in ("causal", "lengths"):
            self.subject = inverted(s, 3)
        leaks_from = self._leaks_from()
        empty = self._empty()
        finite = s.encoding == "finite" or leaks_from is not None
        shown = {name: weights for weights, name in OUTPUT_NAMES.items()}.get(empty.forward, empty.forward)
        return Fingerprint(
            **common,
            mask=mask,
            causal=self.causal,
            empty_row=empty,
            infinite_row=self._infinite(),
            blocked_weight=weight,
            leaks_from=leaks_from,
            reading=policy.finite_reading(shown, leaks_from is not None)
            if finite or shown in ("uniform", "raw softmax")
            else "",
            isolation=attention_isolation(self.subject, self.dtype, self.causal),
            allowed_nan=self._allowed_nan(),
            errors=self.errors.sentences,
        )

    def _ran(self) -> str:
        if self.subject.ran is None:
            return ""
        try:
            return str(self.subject.ran())
        except Exception as trouble:  # evidence that cannot be had does not end the run
            return f"unknown: {said(trouble)}"

    def _problem(
        self, patterns: list[Pattern], wanted: int, scores: Floats
    ) -> tuple[Problem, tuple[int, int, int]] | None:
        found = arranged(self.subject, patterns, wanted, alignment=self.causal)
        d = width(self.subject, KEYS)
        if found is None or d is None:
            return None
        return problem(self.subject, self.dtype, found, scores, heads=2, d=d, family="fingerprint"), found.at

    def _forward(self, patterns: list[Pattern], wanted: int, scores: Floats) -> Array | str:
        """The weights of the wanted query, as its output shows them; or ``error``, or ``unreachable``."""
        made = self._problem(patterns, wanted, scores)
        if made is None:
            return UNREACHABLE
        answer = ask(self.subject, "forward", made[0])
        return self.errors.of(answer) if isinstance(answer, Fault) else answer["output"][made[1]][:KEYS]

    def _alignment(self) -> str:
        """From problems with fewer queries than keys and with more: which keys each query attends to."""
        seen = []
        for queries, keys in ((2, 4), (6, 4)):
            if "queries other than keys" in self.subject.limits:
                queries = keys
            corner: Alignment = self.subject.causal or "top-left"
            mask = causal(queries, keys, corner)
            found = arranged(self.subject, [(True,) * keys], 0)
            d = width(self.subject, KEYS)
            if found is None or d is None:
                return policy.OTHER
            fitting = replace(found, mask=mask[None, None], causal=corner)
            made = problem(self.subject, self.dtype, fitting, np.zeros(keys), heads=2, d=d, family="causal alignment")
            answer = ask(self.subject, "forward", made)
            if isinstance(answer, Fault):
                return self.errors.of(answer)
            output = answer["output"][0, 0, :, :keys].astype(np.float64)
            seen.append(policy.alignment(np.nan_to_num(output, nan=0.0) != 0.0))
        if len(set(seen)) == 1:
            return seen[0]
        return f"{seen[0]} with fewer queries, {seen[1]} with more"

    def _partial(self) -> tuple[float | None, str]:
        weights = self._forward([PARTIAL, FULL], 0, SCORES)
        if isinstance(weights, str):
            return None, weights
        mask = np.asarray(PARTIAL)
        reading = policy.mask_reading(weights, SCORES, mask, self.dtype)
        return policy.leak(weights, ~mask if reading == "blocked" else mask), reading

    def _leaks_from(self) -> float | None:
        mask = np.asarray(PARTIAL)

        def weight(score: float) -> float | None:
            weights = self._forward([PARTIAL, FULL], 0, np.array([0.0, 0.0, 0.0, score]))
            return None if isinstance(weights, str) else policy.leak(weights, mask)

        return first_leak(self.dtype, weight)

    def _empty(self) -> EmptyRow:
        made = self._problem([FULL, EMPTY, PARTIAL], 1, SCORES)
        if made is None:
            return EmptyRow(forward=UNREACHABLE)
        asked, at = made
        others = ~asked.empty
        quiet = replace(asked, cotangent=np.where(others[..., None], asked.cotangent, 0).astype(asked.q.dtype))
        kinds: dict[str, Any] = {}
        spreads: list[str] = []
        answer = ask(self.subject, "forward", asked)
        if isinstance(answer, Fault):
            kinds["forward"] = self.errors.of(answer)
        else:
            name = policy.empty_row(answer["output"][at][:KEYS], SCORES, self.dtype)
            kinds["forward"] = OUTPUT_NAMES.get(name, name)
            if "weights" in answer:
                kinds["weights"] = policy.empty_row(answer["weights"][at], SCORES, self.dtype)
            if "valid" in answer:
                kinds["valid"] = not answer["valid"][at] and bool(answer["valid"][others].all())
            spreads += [] if _finite(answer["output"][others]) else ["output"]
        if self.subject.vjp is not None:
            loud, still = ask(self.subject, "vjp", asked), ask(self.subject, "vjp", quiet)
            if isinstance(loud, Fault):
                kinds["vjp"] = self.errors.of(loud)
            elif isinstance(still, Fault):
                kinds["vjp"] = self.errors.of(still)
            else:
                kinds["vjp"] = self._pullback(loud, still, at)
                spreads += [n for n, a in (("dq", still["dq"][others]), *_shared(still)) if not _finite(a)]
        if self.subject.jvp is not None:
            pushed = ask(self.subject, "jvp", asked)
            if isinstance(pushed, Fault):
                kinds["jvp"] = self.errors.of(pushed)
            else:
                kinds["jvp"] = policy.derivative(pushed["tangent"][at])
                spreads += [] if _finite(pushed["tangent"][others]) else ["jvp"]
        return EmptyRow(spreads=spreads, **kinds)

    @staticmethod
    def _pullback(loud: dict[str, Array], still: dict[str, Array], at: tuple[int, int, int]) -> str:
        """Of the gradient of the empty query itself, and of what its cotangent changes in the shared gradients."""
        mine = policy.derivative(loud["dq"][at])
        if mine != policy.ZERO:
            return mine
        if any(not _finite(a) for _, a in _shared(loud)):
            return policy.NAN
        # In another order of a sum a difference is rounding; a row that is read contributes as much as any other.
        moved = [np.abs(loud[n].astype(np.float64) - a.astype(np.float64)).max() for n, a in _shared(still)]
        return policy.ZERO if max(moved) <= policy.near(str(loud["dq"].dtype)) else policy.OTHER

    def _infinite(self) -> str:
        mask = (True, False, False, False) if self.subject.encoding == "causal" else PARTIAL
        scores = np.where(mask, -np.inf, 0.0)
        weights = self._forward([mask, FULL], 0, scores)
        return weights if isinstance(weights, str) else policy.infinite_row(weights, np.asarray(mask), self.dtype)

    def _allowed_nan(self) -> dict[str, str]:
        made = self._problem([FULL, FULL], 0, SCORES)
        if made is None:  # a causal kernel sees all keys from its last query
            made = self._problem([PARTIAL, PARTIAL], 0, SCORES)
        if made is None:
            return {}
        found = {}
        asked, at = made
        for place in ("key", "value"):
            k, v = asked.k.copy(), asked.v.copy()
            (k if place == "key" else v)[:, :, 0] = np.nan
            answer = ask(self.subject, "forward", replace(asked, k=k, v=v))
            if isinstance(answer, Fault):
                found[place] = self.errors.of(answer)
            else:
                found[place] = "visible" if np.isnan(answer["output"][at].astype(np.float64)).any() else "hidden"
        return found


def _finite(array: Array) -> bool:
    return bool(np.isfinite(array.astype(np.float64)).all())


def _shared(answer: dict[str, Array]) -> list[tuple[str, Array]]:
    return [("dk", answer["dk"]), ("dv", answer["dv"])]
