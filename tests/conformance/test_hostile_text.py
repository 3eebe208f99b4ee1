"""Whatever bytes a certificate holds, and whatever an exception says, the answer is a sentence."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardmask.adapters.errors import said
from hardmask.conformance.certificate import read, write
from hardmask.conformance.certification import Request, certify


def test_a_damaged_certificate_is_refused_with_a_sentence(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "whole.json", tmp_path / "damaged.json"
    write(certify(Request(("numpy.fill-inf",), dtypes=("float32",), effort="smoke")).certificate, whole)
    content = whole.read_bytes()
    assert read(whole)

    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(st.integers(0, len(content) - 1), st.integers(0, 400), st.binary(max_size=40))
    def check(start: int, length: int, instead: bytes) -> None:
        changed = content[:start] + instead + content[start + length :]
        damaged.write_bytes(changed)
        try:
            same = read(damaged) == read(whole)
        except ValueError as problem:
            text = str(problem)
            assert text.endswith(".")
            assert "\n" not in text
            assert "damaged.json" in text
        else:
            assert same, "a certificate that says something else was accepted"

    check()


@settings(max_examples=200)
@given(st.text(max_size=400))
def test_what_an_exception_says_is_printable_and_short(text: str) -> None:
    shown = said(ValueError(text))
    assert shown.startswith("ValueError")
    assert shown.isprintable()
    assert len(shown) <= 320
