"""The JSON Schema of certificates, derived from the typed records that hardmask itself reads them with."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ..certificate import SCHEMA
from ..document import Certificate

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def certificate_schema() -> dict[str, Any]:
    """The schema of a certificate (JSON Schema, draft 2020-12); descriptions are the docstrings of the records.

    Names that are not listed are refused. What no schema can say (the digest, the sums, the verdicts that follow from
    numbers) is checked by ``hardmask verify``.

    >>> certificate_schema()["$defs"]["Certificate"]["properties"]["schema"]
    {'const': 'hardmask-certificate/2'}
    """
    made = msgspec.json.schema(Certificate)
    records: dict[str, Any] = made["$defs"]
    records["Certificate"]["properties"]["schema"] = {"const": SCHEMA}
    for record in records.values():
        if "description" in record:
            record["description"] = " ".join(record["description"].split())
    name, _, number = SCHEMA.partition("/")
    return {
        "$schema": DIALECT,
        "$id": f"urn:{name.replace('-', ':', 1)}:{number}",
        "title": "Certificate of hardmask",
        "description": records["Certificate"]["description"],
        **made,
    }


def schema_text() -> str:
    """The schema as a file: ASCII, indented."""
    return json.dumps(certificate_schema(), indent=1) + "\n"
