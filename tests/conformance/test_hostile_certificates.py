"""Whatever a file holds, every command that reads a certificate answers in a sentence, with exit code 2.

The files are made from a real certificate: cut, edited at every kind of place, or something else altogether. None of
them may end in a traceback, print a control character, or take long; and none may be taken for the certificate.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import canonical, fields, sealed, write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate
from hardmask.conformance.strict_json import LARGEST
from hardmask.conformance.verification.verify import verify

READERS: dict[str, Callable[[str], list[str]]] = {
    "verify": lambda file: ["verify", file],
    "audit": lambda file: ["audit", file, file],
    "replay": lambda file: ["replay", file, "0" * 12],
    "repro": lambda file: ["repro", file, "0" * 12],
    "badge": lambda file: ["badge", file],
    "report": lambda file: ["report", file, "--markdown", "-"],
}
"""Commands that read a certificate, as they are called; those that are not there are left out."""

COMMANDS = [name for name in READERS if name in main.commands]

MARKUP = "<script>alert(1)</script>[red]\x1b[31m\x07\r\u202e\x9b2J"
"""What would control a terminal, a console or a page."""


@pytest.fixture(scope="module")
def text() -> str:
    """A small certificate with failures, as it is written."""

    def off(scores: Any, mask: Any) -> Any:
        return (softmax_where(scores, mask).weights * 1.25).astype(scores.dtype)

    subjects = [Subject("test.off", off, dtypes=("float32",))]
    report = certify(Request(("test.off",), effort="smoke", dtypes=("float32",)), subjects=subjects)
    return json.dumps(fields(report.certificate), sort_keys=True, indent=1) + "\n"


def resealed(content: dict[str, Any]) -> str:
    """The digest that belongs to an edited content: what is refused is refused for another reason."""
    import hashlib

    covered = {name: value for name, value in content.items() if name not in ("digest", "times")}
    return json.dumps(content | {"digest": "sha256:" + hashlib.sha256(canonical(covered)).hexdigest()})


def cut(text: str) -> Iterator[tuple[str, bytes]]:
    """Truncated at every kind of place."""
    for share in range(0, 100, 4):
        yield f"cut after {share} %", text[: len(text) * share // 100].encode()
    for what in ('"digest": "sha', '"findings": [', '"seed": ', '": ', "0x1.", '"mask": [\n', '"schema"', "null", "{"):
        yield f"cut at {what!r}", text[: text.index(what) + len(what)].encode()
    yield "the last brace is missing", text.rstrip()[:-1].encode()


def encodings(text: str) -> Iterator[tuple[str, bytes]]:
    yield "a byte order mark", b"\xef\xbb\xbf" + text.encode()
    for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        yield name, text.encode(name)
    yield "a letter that is not ASCII", text.replace('"id"', '"ïd"', 1).encode()
    yield "a letter in Latin-1", text.replace('"id"', '"ïd"', 1).encode("latin-1")
    yield "an overlong sequence", text.encode().replace(b'"seed"', b'"\xc0\xaf"', 1)
    yield "a null byte", text.encode().replace(b'"seed"', b'"se\x00ed"', 1)
    yield "a control character in a string", text.encode().replace(b'"seed"', b'"se\x1b[31med"', 1)
    yield "half a surrogate pair", text.replace('"diagnosis": "', '"diagnosis": "\\ud800', 1).encode()
    yield "the other half", text.replace('"diagnosis": "', '"diagnosis": "\\udfff', 1).encode()
    yield "an escape that is none", text.replace('"diagnosis": "', '"diagnosis": "\\x41', 1).encode()


def syntax(text: str) -> Iterator[tuple[str, bytes]]:
    yield "text behind the end", (text + "x").encode()
    yield "a second certificate", (text + text).encode()
    yield "a comment", ("// hello\n" + text).encode()
    yield "a comma too many", text.replace("\n}", ",\n}").encode()
    yield "single quotes", text.replace('"', "'").encode()
    yield "a name without quotes", text.replace('"seed"', "seed", 1).encode()
    for name in ("seed", "findings", "digest", "schema", "not_shown", "complete"):
        again = re.search(rf'^ "{name}": ', text, re.M)
        assert again is not None
        yield f"{name} twice", (text[: again.start()] + f' "{name}": 0,\n' + text[again.start() :]).encode()
    yield "a verdict twice", text.replace('"verdict": ', '"verdict": "pass", "verdict": ', 1).encode()
    yield "markup twice", f'{{"{json.dumps(MARKUP)[1:-1]}": 1, "{json.dumps(MARKUP)[1:-1]}": 1}}'.encode()
    for word in ("NaN", "Infinity", "-Infinity", "nan", "True", "None", "undefined", "01", "+1", ".5", "1.", "0x10"):
        yield f"the number {word}", re.sub(r'"seed": \d+', f'"seed": {word}', text).encode()
    for word in ("1e999", "-1e999", "1" + "0" * 400, "1" + "0" * 5000, "1e" + "9" * 400):
        if "e" in word:
            yield f"the time {word[:12]}", re.sub(r'"seconds": [\d.]+', f'"seconds": {word}', text).encode()
        yield f"the seed {word[:12]} of {len(word)} signs", re.sub(r'"seed": \d+', f'"seed": {word}', text).encode()
    for depth in (10, 1_000, 100_000):
        yield (
            f"{depth} lists in the environment",
            text.replace('"environment": {', '"environment": {"a": ' + "[" * depth + "]" * depth + ",", 1).encode(),
        )
        yield f"{depth} open lists", b"[" * depth
        yield f"{depth} objects", b'{"a":' * depth + b"1" + b"}" * depth


def foreign() -> Iterator[tuple[str, bytes]]:
    import pickle

    yield "nothing", b""
    yield "white space", b" \n\t\n"
    yield "null", b"null"
    yield "a number", b"42"
    yield "a string", b'"hardmask-certificate/2"'
    yield "a list", b"[]"
    yield "an empty object", b"{}"
    yield "a pickle", pickle.dumps({"schema": "hardmask-certificate/2"})
    yield "a pickle that would call something", b"cos\nsystem\n(S'false'\ntR."
    yield "Python", b"__import__('os').abort()"
    yield "an archive", b"PK\x03\x04" + bytes(200)
    yield "a compressed file", b"\x1f\x8b\x08" + bytes(200)
    yield "a page", b"<!doctype html><script>alert(1)</script>"
    yield "random bytes", bytes((i * 97 + 31) % 256 for i in range(4096))
    yield "zeros", bytes(4096)
    yield "terminal codes", b"\x1b]0;owned\x07\x1b[2J"


WRONG: tuple[Any, ...] = (None, True, -1, 1.5, "x", MARKUP, [], {}, [[]], {"a": {}}, 2**70, -(2**70))


def typed(text: str) -> Iterator[tuple[str, bytes]]:
    """Values of wrong types everywhere, fields that are missing or unknown: each with a digest that is right."""
    content: dict[str, Any] = json.loads(text)
    failing = next(k for k, f in enumerate(content["findings"]) if f["verdict"] == "fail" and f["witness"]["scores"])
    parts = {
        "subjects[0].": content["subjects"][0],
        "findings[].": content["findings"][failing],
        "witness.": content["findings"][failing]["witness"],
        "measured[0].": content["measured"][0],
        "audit.": content["audit"],
    }
    rotation = 0
    for where, whole in ({"": content} | parts).items():
        for name in list(whole):
            value = whole[name]
            if where == "" and name in ("digest", "times", "environment", "request"):
                wrong: Any = [MARKUP]
            else:
                wrong = next(w for w in WRONG[rotation % len(WRONG) :] + WRONG if not _fits(w, value, name))
            rotation += 1
            whole[name] = wrong
            yield (
                f"{where}{name} is {str(wrong)[:12]!r}",
                resealed(content).encode() if name != "digest" else json.dumps(content).encode(),
            )
            del whole[name]
            if _required(where, name):
                yield (
                    f"{where}{name} is missing",
                    (resealed(content) if name != "digest" else json.dumps(content)).encode(),
                )
            whole[name] = value
        whole[MARKUP] = 1
        yield f"{where or 'the top'} has an unknown name", resealed(content).encode()
        del whole[MARKUP]
    content["schema"] = MARKUP
    yield "a schema of markup", resealed(content).encode()
    content["schema"] = "hardmask-certificate/1"
    yield "an older schema", resealed(content).encode()


def _fits(wrong: Any, value: Any, name: str) -> bool:
    """Whether a wrong value is one that the record takes after all."""
    if isinstance(value, str):
        return isinstance(wrong, str) and name not in ("verdict", "schema")
    if value is None or name in ("witness", "minimal", "index", "enclosure", "error", "budget", "ratio", "attention"):
        return wrong is None or isinstance(wrong, (int, float)) or wrong in ([], {})
    if isinstance(value, bool):
        return isinstance(wrong, bool)
    if isinstance(value, (int, float)):
        number = isinstance(wrong, (int, float)) and not isinstance(wrong, bool)
        largest = 2**53 if isinstance(value, int) and name != "seed" else 2**99
        return number and (isinstance(value, float) or 0 <= wrong <= largest)
    return type(wrong) is type(value) or wrong is None


def _required(where: str, name: str) -> bool:
    """Whether a record has no default for a field."""
    if where == "":
        return True
    required = {
        "subjects[0].": {"id", "adapter", "role", "path", "contract", "tier", "methods", "dtypes", "verdict"},
        "findings[].": {"subject", "declaration", "dtype", "family", "verdict", "diagnosis"},
        "witness.": {"batch", "row", "keys"},
        "measured[0].": {"subject", "declaration", "dtype", "declared", "strongest"},
        "audit.": {"rows", "entries", "engine", "share"},
    }
    return name in required[where]


def edited(text: str) -> Iterator[tuple[str, bytes]]:
    """Right in every way, but for the digest."""
    content: dict[str, Any] = json.loads(text)
    for name, value in (("seed", 1), ("complete", False), ("findings", []), ("hardmask", MARKUP), ("not_shown", [])):
        yield f"another {name}", json.dumps(content | {name: value}).encode()
    yield "another digest", json.dumps(content | {"digest": "sha256:" + "0" * 64}).encode()


def broken(text: str) -> list[tuple[str, bytes]]:
    found = [*cut(text), *encodings(text), *syntax(text), *foreign(), *typed(text), *edited(text)]
    # A few edits of the syntax leave the certificate what it is: they are not broken.
    return [(name, content) for name, content in found if content != text.encode()]


def harmless(shown: str) -> bool:
    """Whether a text holds nothing that controls a terminal."""
    return all(c.isprintable() or c == "\n" for c in shown)


def test_there_are_enough_of_them(text: str) -> None:
    made = broken(text)
    assert len({name for name, _ in made}) == len(made) >= 200
    assert len({content for _, content in made}) > 0.95 * len(made)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_broken_file_gets_a_sentence(command: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "bro\x1b[31mken.json"
    some = broken(text)[:: 1 if command == "verify" else 4]
    for name, content in some:
        file.write_bytes(content)
        result = CliRunner().invoke(main, READERS[command](str(file)))
        told = f"{command}, {name}: {result.exit_code} {result.output[:400]!r}"
        assert result.exit_code == 2, told
        assert result.exception is None or isinstance(result.exception, SystemExit), told
        assert result.stdout == "", told
        assert "bro[31mken.json" in result.stderr.replace("�", ""), told
        assert result.stderr.rstrip().endswith("."), told
        assert harmless(result.stderr), told
        assert result.stderr.count("\n") == 1, told
        assert len(result.stderr) < 1000, told


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_regular_file_gets_a_sentence(command: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(link)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)
    for path in (
        tmp_path,
        pipe,
        link,
        large,
        Path("/dev/zero"),
        Path("/dev/null"),
        tmp_path / "missing",
        Path("a" * 5000),
    ):
        result = CliRunner().invoke(main, READERS[command](str(path)))
        assert result.exit_code == 2, (path, result.output)
        assert "cannot be read" in result.stderr or "Invalid value" in result.stderr, (path, result.output)
        assert harmless(result.stderr)
        assert result.stdout == ""


def test_hostile_names_in_a_certificate_that_is_right_reach_no_terminal(text: str, tmp_path: Path) -> None:
    """Names, words and reasons of markup, with a digest that is right: it can be read, and does not hold."""
    content: dict[str, Any] = json.loads(text)
    for f in content["findings"]:
        f["subject"] = f["diagnosis"] = f["family"] = MARKUP
    for s in content["subjects"]:
        s["id"] = s["path"] = s["contract"] = MARKUP
    content["hardmask"] = MARKUP
    content["declarations"] = {MARKUP: {"statement": MARKUP, "plain": MARKUP, "fingerprint": MARKUP}}
    file = tmp_path / "c.json"
    file.write_text(resealed(content))
    result = CliRunner().invoke(main, ["verify", str(file), "--json", str(tmp_path / "v.json")])
    assert result.exit_code == 1, result.output
    assert harmless(result.output)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", (tmp_path / "v.json").read_text())


HUGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rounds that are no number": lambda c: c["request"].update(rounds="many"),
    "a row with very many keys": lambda c: _failing(c)["witness"].update(keys=10**9),
    "an index far outside": lambda c: _failing(c)["witness"].update(index=10**9),
    "a row far outside": lambda c: _failing(c)["witness"].update(row=10**12),
    "enormous scores": lambda c: _failing(c)["witness"].update(
        scores=["0x1.fffffffffffffp+1023"] * _failing(c)["witness"]["keys"]
    ),
    "NaN everywhere": lambda c: _failing(c)["witness"].update(scores=["nan"] * _failing(c)["witness"]["keys"]),
    "an enclosure that is no number": lambda c: _failing(c).update(enclosure=["1e999999999", MARKUP]),
    "a true value with a giant exponent": lambda c: _failing(c)["witness"].update(
        exact=["1E+99999"] * _failing(c)["witness"]["keys"]
    ),
    "a true value that is no number": lambda c: _failing(c)["witness"].update(
        exact=[MARKUP] * _failing(c)["witness"]["keys"]
    ),
    "a dtype of one's own": lambda c: [f.update(dtype=MARKUP) for f in c["findings"]],
    "a tier of one's own": lambda c: [f.update(tier="strict with alpha=1e308, online=maybe") for f in c["findings"]],
    "a problem of attention without end": lambda c: _failing(c).update(
        witness=None,
        attention={"problem": "x", "sizes": [2**40] * 7, "quantity": "output", "index": [0, 0, 0, 0], "q": []},
    ),
    "a problem of attention without heads": lambda c: _failing(c).update(
        witness=None,
        attention={"problem": "x", "sizes": [1, 0, 0, 1, 1, 1, 1], "quantity": "dk", "index": [], "q": []},
    ),
    "a request of lists": lambda c: c.update(request={name: [[]] for name in c["request"]}),
    "an empty request": lambda c: c.update(request={}),
    "an environment of lists": lambda c: c.update(environment={"libraries": [], "frameworks": 3}),
    "no findings at all": lambda c: c.update(findings=[], subjects=[], declarations={}, measured=[], not_shown=[]),
    "a sweep without end": lambda c: c["request"].update(exhaustive={"dtypes": ["float16"], "fraction": 5, "parts": 1}),
    "numbers that overflow": lambda c: _failing(c).update(error=1e308, budget=1e-308, ratio=0.5),
}


def _failing(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(
        f for f in content["findings"] if f["verdict"] == "fail" and (f["attention"] or f["witness"]) and f["budget"]
    )
    return found


@pytest.mark.parametrize("name", HUGE)
def test_what_can_be_read_and_is_absurd_is_not_verified(name: str, text: str, tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(text)
    HUGE[name](content)
    file = tmp_path / "c.json"
    file.write_text(resealed(content))
    result = CliRunner().invoke(main, ["verify", str(file)])
    assert result.exit_code in (1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert harmless(result.output)


VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, 2**53, 0.0, -0.5, 1e308, 5e-324, "", "x", "nan", "inf", [], {}, [0, 0, 0, 0], [9, 9, 9, -1]),
    *("0x1.0000000000000p+0", "-0x1.fffffffffffffp+1023", "0x0.0000000000001p-1022", "1E+4000", "0.5 ± 1E-3"),
    *("float64", "vjp", "difference", "inner product", "row sum", "valid", "given the returned weights", "reject"),
    *("strict with alpha=3.0", "half-ops", "fallback(3)", "extension:isolation", "float32/shapes/104x16/0"),
)
"""What is put in the place of values, wherever the records take it."""


def test_values_in_wrong_places_are_weighed_and_never_a_traceback(text: str) -> None:
    content: dict[str, Any] = json.loads(text)
    failing = [f for f in content["findings"] if f["verdict"] == "fail"][::9]
    passing = [f for f in content["findings"] if f["verdict"] != "fail"][::9]
    content |= {"findings": failing + passing, "outputs": content["outputs"][:3], "errors": content["errors"][:3]}
    rng, tried = random.Random(0), 0
    for _ in range(3000):
        changed = json.loads(json.dumps(content))
        places: list[tuple[Any, Any]] = []
        for part in ("findings", "measured", "subjects", "errors", "request", "environment"):
            places += _places(changed[part])
        for _ in range(rng.choice((1, 1, 2, 4))):
            whole, name = rng.choice(places)
            whole[name] = rng.choice(VALUES)
        try:
            certificate = msgspec.convert(changed, Certificate)
        except msgspec.ValidationError:
            continue
        assert verify(certificate).problems, "a certificate that lacks findings"
        tried += 1
        if tried == 60:
            break
    assert tried == 60


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a value that can be replaced."""
    names = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from _places(value[name])


def test_rounds_without_end_take_no_time(text: str, tmp_path: Path) -> None:
    """Only the rounds whose batches are named are planned again."""
    content: dict[str, Any] = json.loads(text)
    content["request"]["rounds"] = 10**15
    _failing(content)["witness"]["batch"] = "float32/shapes/104x16/999999999"
    (tmp_path / "c.json").write_text(resealed(content))
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "c.json")])
    assert result.exit_code == 0, result.output
    assert "rows of a run that this version does not plan" in result.output


def test_the_certificate_itself_is_read(text: str, tmp_path: Path) -> None:
    """The broken files are broken by their edits: the text that they are made from is a certificate."""
    (tmp_path / "c.json").write_text(text)
    assert CliRunner().invoke(main, ["verify", str(tmp_path / "c.json")]).exit_code == 0
    (tmp_path / "d.json").write_text(resealed(json.loads(text)))
    assert CliRunner().invoke(main, ["verify", str(tmp_path / "d.json")]).exit_code == 0
    report = certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)))
    write(sealed(report.certificate), tmp_path / "e.json")
    assert CliRunner().invoke(main, ["verify", str(tmp_path / "e.json")]).exit_code == 0
