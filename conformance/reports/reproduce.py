"""The command that makes a certificate again."""

from __future__ import annotations

import shlex
from typing import Any

from ...spec.formats import DTYPES
from ..document import Certificate


def command_of(certificate: Certificate) -> str:
    """The command that asks for what the certificate holds, with its seed; text in it is quoted for a shell."""
    request = certificate.request
    words = ["hardmask", "certify", *_texts(request, "targets")]
    for name in ("contract", "effort"):
        if isinstance(request.get(name), str):
            words += [f"--{name}", request[name]]
    if isinstance(request.get("rounds"), int):
        words += ["--rounds", str(request["rounds"])]
    for name in _texts(request, "require"):
        words += ["--require", name]
    dtypes = _texts(request, "dtypes")
    sweep = request.get("exhaustive")
    if set(dtypes) != set(DTYPES):
        for name in dtypes:
            words += ["--dtype", name]
    if isinstance(sweep, dict):
        for name in _texts(sweep, "dtypes"):
            words += ["--exhaustive", name]
        for name in _texts(sweep, "parts"):
            words += ["--part", name]
        if sweep.get("fraction") != 1.0:
            words += ["--fraction", str(sweep.get("fraction"))]
    words += ["--specimens"] if request.get("specimens") is True else []
    return shlex.join([*words, "--seed", str(certificate.seed)])


def _texts(request: dict[str, Any], name: str) -> list[str]:
    found = request.get(name)
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
