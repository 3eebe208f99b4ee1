"""What a Subject refuses to hold, and the sentence that says so."""

from __future__ import annotations

from typing import Any

import pytest

from hardmask.adapters import Subject
from hardmask.adapters.subject import CONVENTIONS, METHODS
from hardmask.spec.formats import DTYPES, HALVES


def made(**fields: Any) -> Subject:
    return Subject(**{"id": "mine.f", "forward": abs, **fields})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"id": "mine f"},
            "A subject needs an id without spaces or control characters, of at most 200 characters; 'mine f' is none. "
            "Write for instance 'mine.softmax'.",
        ),
        (
            {"dtypes": ("float8",)},
            "Subject 'mine.f' names the dtype 'float8'; hardmask judges float64, float32, float16, bfloat16.",
        ),
        (
            {"role": "example"},
            "Subject 'mine.f' has the role 'example'; use entry-point, reference or specimen.",
        ),
        (
            {"promises": frozenset({"speed"})},
            "Subject 'mine.f' promises 'speed', which hardmask does not know.",
        ),
        (
            {"convention": "masked"},
            "Subject 'mine.f' has the convention 'masked'; use one of: allowed, blocked, additive.",
        ),
        (
            {"forward": None},
            "Subject 'mine.f' has a forward of type NoneType, which cannot be called. "
            "Give a function forward(scores, mask).",
        ),
        (
            {"vjp": "none"},
            "Subject 'mine.f' has a vjp of type str, which cannot be called. "
            "Give a function vjp(scores, mask, cotangents).",
        ),
        (
            {"jvp": 0},
            "Subject 'mine.f' has a jvp of type int, which cannot be called. "
            "Give a function jvp(scores, mask, tangents).",
        ),
        *(
            (
                {"tier": {key: "strict"}},
                f"Subject 'mine.f' declares a tier for '{key}'; write a dtype or 'half', or one of them after "
                "a method, as in 'jvp:half'.",
            )
            for key in ("float8", "halves", "jvp", "half:jvp", "grad:float32", "jvp:halves", "jvp: half", 16)
        ),
        *(
            (
                {"unsupported": {key: "Nobody has written it."}},
                f"Subject 'mine.f' says why '{key}' is unsupported, which is neither a method nor a dtype; "
                "use forward, vjp, jvp, float64, float32, float16, bfloat16.",
            )
            for key in ("half", "grad", "float8", "vjp:float32")
        ),
        (
            {"unsupported": {"vjp": True}},
            "Subject 'mine.f' gives no reason in words why 'vjp' is unsupported.",
        ),
    ],
)
def test_what_is_misspelt_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^(Subject 'mine\.f'|A subject) ") as raised:
        made(**fields)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("tier", ["fast", {"half": "fast"}])
def test_an_unknown_tier_is_refused(tier: Any) -> None:
    with pytest.raises(ValueError, match=r"^Subject 'mine\.f' declares the tier 'fast'; choose one of: strict, "):
        made(tier=tier)


def test_every_key_and_value_that_is_documented_is_accepted() -> None:
    for convention in CONVENTIONS:
        assert made(convention=convention).convention == convention
    reasons = dict.fromkeys((*METHODS, *DTYPES), "Nobody has written it.")
    assert made(unsupported=reasons, vjp=None, jvp=abs).methods == ("forward", "jvp")
    for dtype in DTYPES:
        for method in METHODS:
            keys = [f"{method}:{dtype}", dtype]
            if dtype in HALVES:
                keys = [f"{method}:{dtype}", f"{method}:half", dtype, "half"]
            default = made().tier_for(method, dtype)
            for key in keys:
                tier = "half-ops" if dtype in HALVES else "mixed"
                assert tier != default
                assert made(tier={key: tier}).tier_for(method, dtype) == tier
