"""The table of full sweeps is made from certificates, and shows full sweeps only."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.document import Certificate
from hardmask.conformance.exhaustive import Enumeration

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hardmask_docs_exhaustive", DOCS / "generate_exhaustive.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    enumeration = Enumeration(("float16",), 2e-5, ("pairs", "empty"))
    return certify(Request(("numpy.fill-inf",), enumeration=enumeration)).certificate


def full(certificate: Certificate) -> Certificate:
    """The certificate as it would be if the sample were everything."""
    sweeps = [msgspec.structs.replace(s, of=s.sampled, violations=7) for s in certificate.sweeps]
    return msgspec.structs.replace(certificate, sweeps=sweeps)


def test_a_sample_is_not_shown(script: ModuleType, certificate: Certificate) -> None:
    assert "numpy.fill-inf" not in script.table([certificate])
    shown = script.table([full(certificate)])
    assert "| `numpy.fill-inf` | float16 | pairs (1,1) | 63,488 | 7 |" in shown
    assert "| `numpy.fill-inf` | float16 | pairs (0,0) | 65,536 | 7 | – | – |" in shown
    assert f"numpy {certificate.environment['frameworks']['numpy']}" in shown


def test_the_table_takes_the_place_of_the_old_one(script: ModuleType, certificate: Certificate, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{script.MARK}\nold\n{script.MARK}\nafter\n")
    script.write([full(certificate)], page)
    text = page.read_text()
    assert text.startswith(f"before\n{script.MARK}\n{script.HEAD}\n")
    assert text.endswith(f"\n{script.MARK}\nafter\n")
    assert "old" not in text
    assert (DOCS / "exhaustive.md").read_text().count(script.MARK) == 2
