"""Signed statements about certificates: who signed what, and everything that may be wrong with it."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from in_toto_attestation.v1.statement import STATEMENT_TYPE_URI
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

from hardmask.conformance.certificate import read, write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.verification.signature import PAYLOAD_TYPE, PREDICATE_TYPE

KEYS: dict[str, Callable[[], Any]] = {
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "ECDSA": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


def save(key: Any, folder: Path, name: str, *, encryption: Any = None) -> None:
    """A key pair in PEM, as ``NAME.pem`` and ``NAME.pub.pem``."""
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}.pub.pem").write_bytes(public)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two certificates, two key pairs, and a signed statement about the first certificate."""
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        request = Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",), seed=seed)
        write(certify(request).certificate, tmp_path / f"c{seed}.json")
    for name in ("mine", "other"):
        save(KEYS["Ed25519"](), tmp_path, name)
    assert hardmask("sign", "c0.json", "--key", "mine.pem", "--out", "c0.intoto.json").exit_code == 0
    return tmp_path


def hardmask(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def checked(certificate: str = "c0.json", statement: str = "c0.intoto.json", key: str = "mine.pub.pem") -> Result:
    return hardmask("verify", certificate, "--signature", statement, "--public-key", key)


def test_a_statement_names_the_file_and_sums_it_up(folder: Path) -> None:
    envelope = json.loads((folder / "c0.intoto.json").read_text())
    assert envelope["payloadType"] == PAYLOAD_TYPE
    statement = json.loads(base64.b64decode(envelope["payload"]))
    content, certificate = (folder / "c0.json").read_bytes(), read(folder / "c0.json")
    assert statement["_type"] == STATEMENT_TYPE_URI == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "c0.json", "digest": {"sha256": hashlib.sha256(content).hexdigest()}}]
    assert statement["predicateType"] == PREDICATE_TYPE
    predicate = statement["predicate"]
    assert predicate["digest"] == certificate.digest
    assert predicate["verdicts"] == {"numpy.softmax-where": "pass"}
    assert predicate["frameworks"] == certificate.environment["frameworks"]
    assert (predicate["complete"], predicate["hardmask"]) == (True, certificate.hardmask)


@pytest.mark.parametrize("kind", KEYS)
def test_every_kind_of_key_signs_and_is_recognised(kind: str, folder: Path) -> None:
    save(KEYS[kind](), folder, "new")
    signed = hardmask("sign", "c0.json", "--key", "new.pem", "--out", "new.intoto.json")
    assert (signed.exit_code, signed.output) == (0, "Signed: new.intoto.json\n")
    result = checked(statement="new.intoto.json", key="new.pub.pem")
    assert result.exit_code == 0, result.output
    assert "signed with key " in result.output
    assert checked(statement="new.intoto.json").exit_code == 1


def resigned(folder: Path, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> None:
    """A statement of one's own, signed with the key that is asked for."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    envelope = Envelope(payload, payload_type, {})
    envelope.sign(CryptoSigner(load_pem_private_key((folder / "mine.pem").read_bytes(), None)))
    (folder / "x.json").write_text(json.dumps(envelope.to_dict()))


def statement_of(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(base64.b64decode(json.loads((folder / "c0.intoto.json").read_text())["payload"]))
    return made


def test_another_certificate_another_key_and_a_changed_statement_do_not_hold(folder: Path) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({"certificate": "c1.json"}, "'c0.intoto.json' is signed, and speaks of another file than 'c1.json'."),
        ({"key": "other.pub.pem"}, "'c0.intoto.json' was not signed with 'other.pub.pem', or was changed since."),
    ]
    envelope = json.loads((folder / "c0.intoto.json").read_text())
    statement = statement_of(folder)
    statement["predicate"]["complete"] = False
    changed = envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}
    (folder / "changed.json").write_text(json.dumps(changed))
    cases.append(({"statement": "changed.json"}, "'changed.json' was not signed with 'mine.pub.pem', or was changed"))
    changed = envelope | {"payloadType": "text/plain"}
    (folder / "type.json").write_text(json.dumps(changed))
    cases.append(({"statement": "type.json"}, "'type.json' was not signed with 'mine.pub.pem', or was changed"))
    changed = envelope | {"signatures": []}
    (folder / "none.json").write_text(json.dumps(changed))
    cases.append(({"statement": "none.json"}, "'none.json' was not signed with 'mine.pub.pem', or was changed since."))
    for named, sentence in cases:
        result = checked(**named)
        assert result.exit_code == 1, result.output
        assert f"  signature: {sentence}" in result.output
        assert result.output.endswith("Not verified: one thing does not hold.\n")
        assert "signed with key" not in result.output


def test_the_name_of_a_key_is_a_hint_only(folder: Path) -> None:
    """By the standard of the envelope: another tool may name the same key otherwise."""
    envelope = json.loads((folder / "c0.intoto.json").read_text())
    envelope["signatures"][0]["keyid"] = "a key of mine"
    (folder / "c0.intoto.json").write_text(json.dumps(envelope))
    assert checked().exit_code == 0


def test_a_signature_under_something_else_does_not_hold(folder: Path) -> None:
    statement = statement_of(folder)
    texts: list[tuple[bytes, str, str]] = [
        (json.dumps(statement | {"predicateType": "urn:x\x1b[31m"}).encode(), PAYLOAD_TYPE, "states 'urn:x[31m'"),
        (json.dumps(statement | {"_type": "https://example.org"}).encode(), PAYLOAD_TYPE, "holds no in-toto statement"),
        (json.dumps(statement | {"subject": []}).encode(), PAYLOAD_TYPE, "holds no in-toto statement"),
        (json.dumps(statement | {"more": 1}).encode(), PAYLOAD_TYPE, "holds no in-toto statement"),
        (json.dumps(statement).encode(), "application/json", "holds no in-toto statement"),
        (b"[]", PAYLOAD_TYPE, "holds no in-toto statement"),
        (b"hello", PAYLOAD_TYPE, "holds no in-toto statement"),
        (b"\xff\xfe", PAYLOAD_TYPE, "holds no in-toto statement"),
        (b"[" * 50_000, PAYLOAD_TYPE, "holds no in-toto statement"),
        (b'{"a": 1, "a": 1}', PAYLOAD_TYPE, "holds no in-toto statement"),
    ]
    statement["predicate"]["digest"] = "sha256:" + "0" * 64
    texts.append((json.dumps(statement).encode(), PAYLOAD_TYPE, "sums up another certificate"))
    for payload, kind, sentence in texts:
        resigned(folder, payload, kind)
        result = checked(statement="x.json")
        assert result.exit_code == 1, (payload[:80], result.output)
        assert f"  signature: 'x.json' is signed, and {sentence}" in result.output
        assert all(c.isprintable() or c == "\n" for c in result.output)


ENVELOPES: tuple[Any, ...] = (
    None,
    [],
    {},
    "x",
    {"payload": "", "payloadType": "", "signatures": {}},
    {"payload": "", "payloadType": "", "signatures": [1]},
    {"payload": "", "payloadType": "", "signatures": [{}]},
    {"payload": "", "payloadType": "", "signatures": [{"sig": 1, "keyid": "a"}]},
    {"payload": "", "payloadType": "", "signatures": [{"sig": "AA==", "keyid": 1}]},
    {"payload": "", "payloadType": "", "signatures": [{"sig": "A", "keyid": "a"}]},
    {"payload": "", "payloadType": "", "signatures": [{"sig": "AA==", "keyid": "a"}] * 2},
    {"payload": "!", "payloadType": "", "signatures": []},
    {"payload": 1, "payloadType": "", "signatures": []},
    {"payload": "", "payloadType": 1, "signatures": []},
    {"payload": "\ud800", "payloadType": "\ud800", "signatures": []},
)


def test_what_is_no_envelope_gets_a_sentence(folder: Path) -> None:
    for envelope in (*map(json.dumps, ENVELOPES), "", "{", "[" * 50_000, '{"payload": "", "payload": ""}', "\x1b[2J"):
        (folder / "x.json").write_text(envelope)
        result = checked(statement="x.json")
        assert (result.exit_code, result.stdout) in ((2, ""), (1, result.stdout)), (envelope[:80], result.output)
        assert "no DSSE envelope" in result.stderr or "was not signed with" in result.stdout, (
            envelope[:80],
            result.output,
        )
        assert result.stderr.count("\n") <= 1
        assert "Traceback" not in result.output


def test_keys_that_cannot_be_used_get_a_sentence(folder: Path) -> None:
    save(KEYS["Ed25519"](), folder, "secret", encryption=BestAvailableEncryption(b"password"))
    save(x25519.X25519PrivateKey.generate(), folder, "exchange")
    (folder / "text.pem").write_text("hello")
    sentences = {
        "secret.pem": "The private key 'secret.pem' is encrypted. Decrypt it first.",
        "exchange.pem": "'exchange.pem' is no private key that can sign: give Ed25519, ECDSA or RSA in PEM.",
        "text.pem": "'text.pem' is no private key that can sign: give Ed25519, ECDSA or RSA in PEM.",
        "mine.pub.pem": "'mine.pub.pem' is no private key that can sign: give Ed25519, ECDSA or RSA in PEM.",
        "missing.pem": "The private key 'missing.pem' cannot be read: No such file or directory.",
        ".": "The private key '.' cannot be read: Is a directory.",
    }
    for key, sentence in sentences.items():
        result = hardmask("sign", "c0.json", "--key", key, "--out", "x.json")
        assert (result.exit_code, result.output) == (2, sentence + "\n")
        assert not (folder / "x.json").exists()
    for key in ("mine.pem", "exchange.pub.pem", "text.pem"):
        result = checked(key=key)
        assert (result.exit_code, result.output) == (
            2,
            f"'{key}' is no public key in PEM: give Ed25519, ECDSA or RSA.\n",
        )


def test_what_is_asked_for_has_to_fit(folder: Path) -> None:
    result = hardmask("verify", "c0.json", "--signature", "c0.intoto.json")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "give both --signature and --public-key" in result.output
    (folder / "broken.json").write_text("{}")
    result = hardmask("sign", "broken.json", "--key", "mine.pem", "--out", "x.json")
    assert result.exit_code == 2
    assert "'broken.json' is not a complete hardmask certificate" in result.output
    result = hardmask("sign", "c0.json", "--key", "mine.pem", "--out", "no/such/folder.json")
    assert (result.exit_code, "its folder is not there" in result.output) == (2, True)


def test_without_the_extra_there_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "securesystemslib"]:
        monkeypatch.setitem(sys.modules, name, None)
    for result in (checked(), hardmask("sign", "c0.json", "--key", "mine.pem", "--out", "x.json")):
        assert result.exit_code == 2
        assert result.output == "Signatures need the extra 'sign'. Run: pip install 'hardmask[sign]'\n"
    assert hardmask("verify", "c0.json").exit_code == 0
