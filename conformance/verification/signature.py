"""Signed statements about certificates: in-toto statements in DSSE envelopes, by securesystemslib.

The statement names the file by its SHA-256 and sums up what it says; its key says who stands behind it. Whether the
certificate is right a signature does not say: that is what verification is for.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import Any

from ..document import Certificate
from ..strict_json import content_of, decoded
from ..text import printable

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "urn:hardmask:certificate-summary:1"
MISSING = "Signatures need the extra 'sign'. Run: pip install 'hardmask[sign]'"


class SignatureProblem(ValueError):
    """A statement cannot be signed or read; the message is a sentence."""


class NotSigned(Exception):
    """A statement does not hold: another key, another file, or it was changed; the message is a sentence."""


def signed_statement(content: bytes, certificate: Certificate, name: str, key: str) -> bytes:
    """A signed in-toto statement (v1) about a certificate, as a DSSE envelope in JSON.

    ``content`` and ``name``: the file as it is; ``key``: the path of a private key in PEM, not encrypted, for Ed25519,
    ECDSA (P-256, P-384, P-521) or RSA. Raises ValueError with a sentence where the key cannot be used or the extra
    ``sign`` is missing.
    """
    pem = content_of(key, "private key")
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from google.protobuf.json_format import MessageToDict
        from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
        from in_toto_attestation.v1.statement import Statement
        from securesystemslib.dsse import Envelope
        from securesystemslib.signer import CryptoSigner
    except ImportError:
        raise SignatureProblem(MISSING) from None
    try:
        signer = CryptoSigner(load_pem_private_key(pem, password=None))
    except TypeError:
        raise SignatureProblem(f"The private key '{printable(key)}' is encrypted. Decrypt it first.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SignatureProblem(
            f"'{printable(key)}' is no private key that can sign: give Ed25519, ECDSA or RSA in PEM."
        ) from None
    subject = ResourceDescriptor(name=PurePath(name).name, digest={"sha256": hashlib.sha256(content).hexdigest()})
    statement = Statement([subject.pb], PREDICATE_TYPE, summary(certificate))
    statement.validate()
    payload = json.dumps(MessageToDict(statement.pb), sort_keys=True, separators=(",", ":"), allow_nan=False)
    envelope = Envelope(payload.encode("ascii"), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    return (json.dumps(envelope.to_dict(), sort_keys=True, indent=1) + "\n").encode("ascii")


def summary(certificate: Certificate) -> dict[str, Any]:
    """The predicate of a statement: what the certificate comes to, and what was judged by which versions."""
    frameworks = certificate.environment.get("frameworks")
    return {
        "digest": certificate.digest,
        "schema": certificate.schema,
        "hardmask": certificate.hardmask,
        "complete": certificate.complete,
        "frameworks": dict(frameworks) if isinstance(frameworks, dict) else {},
        "verdicts": {s.id: s.verdict for s in certificate.subjects},
    }


def check_signature(content: bytes, certificate: Certificate, name: str, statement: str, key: str) -> str:
    """Check a signed statement about a certificate, and say in a sentence who signed what.

    ``content`` and ``name``: the certificate's file; ``statement``: the path of the envelope; ``key``: that of a public
    key in PEM. Raises NotSigned where the signature is not of that key or the statement is about something else, and
    ValueError where the files cannot be read as what they should be, or the extra ``sign`` is missing.
    """
    shown = printable(statement)
    envelope_bytes, pem = content_of(statement, "statement"), content_of(key, "public key")
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        from google.protobuf.json_format import ParseDict, ParseError
        from in_toto_attestation.v1 import statement_pb2
        from in_toto_attestation.v1.statement import Statement
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import FormatError, UnverifiedSignatureError
        from securesystemslib.signer import SSlibKey
    except ImportError:
        raise SignatureProblem(MISSING) from None
    try:
        public = SSlibKey.from_crypto(load_pem_public_key(pem))
    except (ValueError, UnsupportedAlgorithm):
        raise SignatureProblem(f"'{printable(key)}' is no public key in PEM: give Ed25519, ECDSA or RSA.") from None
    try:
        envelope = Envelope.from_dict(decoded(envelope_bytes))
        signatures, payload_type = list(envelope.signatures.values()), envelope.payload_type
        covered = envelope.pae()
    except (ValueError, KeyError, TypeError, AttributeError, FormatError, RecursionError):
        raise SignatureProblem(f"'{shown}' is no DSSE envelope.") from None
    for signature in signatures:
        try:
            # By the standard a key's name is a hint only: what counts is whether the signature holds.
            SSlibKey(signature.keyid, public.keytype, public.scheme, public.keyval).verify_signature(signature, covered)
            break
        except (UnverifiedSignatureError, TypeError):
            continue
    else:
        raise NotSigned(f"'{shown}' was not signed with '{printable(key)}', or was changed since.")
    try:
        if payload_type != PAYLOAD_TYPE:
            raise ValueError(payload_type)
        made = Statement.copy_from_pb(ParseDict(decoded(envelope.payload), statement_pb2.Statement()))
        made.validate()
    except (ValueError, ParseError, TypeError, RecursionError):
        raise NotSigned(f"'{shown}' is signed, and holds no in-toto statement.") from None
    if made.pb.predicate_type != PREDICATE_TYPE:
        other = printable(made.pb.predicate_type, 80)
        raise NotSigned(f"'{shown}' is signed, and states '{other}', not '{PREDICATE_TYPE}'.")
    digest = hashlib.sha256(content).hexdigest()
    if digest not in [s.digest.get("sha256") for s in made.pb.subject]:
        raise NotSigned(f"'{shown}' is signed, and speaks of another file than '{printable(name)}'.")
    stated = dict(made.pb.predicate)
    if stated.get("digest") != certificate.digest:
        raise NotSigned(f"'{shown}' is signed, and sums up another certificate than '{printable(name)}'.")
    return f"signed with key {public.keyid[:16]}…, which is {printable(key)}"
