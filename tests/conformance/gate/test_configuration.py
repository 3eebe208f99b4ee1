"""The configuration: what is read, and one sentence with exit code 2 for every file that is not right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from hardmask.conformance.cli import main
from hardmask.conformance.gate.asked import asked
from hardmask.conformance.gate.configuration import (
    DEEPEST,
    DTYPES,
    KEYS,
    LARGEST,
    Configuration,
    ConfigurationError,
    found,
    read,
)
from hardmask.conformance.gate.rule import Rule
from hardmask.spec.formats import DTYPES as OFFERED

MARKUP = "<script>[red]\x1b[31m\x07\u202e"

WHOLE = """\
targets = ["numpy", "kernel.py:mine"]
contract = "zero"
require = ["isolation"]
specimens = true
dtypes = ["float32", "float16", "float32"]
effort = "smoke"
rounds = 2
seed = 7

[[deviation]]
subject = "numpy.*"
declarations = ["extension:empty-row", "*blocked_eq_zero"]
dtypes = ["float32", "float16"]
family = "one empty*"
reason = '''The kernel
is old.'''
link = "https://example.org/1"
expires = 2030-01-31

[[deviation]]
subject = "kernel.mine"
declaration = "extension:row-sum"
reason = "Why."
expires = "2030-02-28"
"""

RULE = '[[deviation]]\nsubject = "a"\ndeclaration = "b"\nreason = "c"\nexpires = 2030-01-31\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_everything_that_a_file_may_say() -> None:
    Path("hardmask.toml").write_text(WHOLE)
    config = read("hardmask.toml")
    rule = Rule(
        "numpy.*", "extension:empty-row", "float32", "one empty*", "The kernel is old.", "https://example.org/1",
        date(2030, 1, 31),
    )  # fmt: skip
    assert config.rules[0] == rule
    assert [(r.declaration, r.dtype) for r in config.rules] == [
        *(("extension:empty-row", "float32"), ("extension:empty-row", "float16")),
        *(("*blocked_eq_zero", "float32"), ("*blocked_eq_zero", "float16")),
        ("extension:row-sum", ""),
    ]
    assert config.rules[-1].expires == date(2030, 2, 28)
    assert (config.targets, config.contract, config.require) == (("numpy", "kernel.py:mine"), "zero", ("isolation",))
    assert (config.specimens, config.dtypes, config.effort) == (True, ("float32", "float16"), "smoke")
    assert (config.rounds, config.seed) == (2, 7)
    assert set(Configuration.__dataclass_fields__) == {*KEYS, "path", "rules"} - {"deviation"}
    assert DTYPES == OFFERED


def test_the_nearest_file_up_to_the_root_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "hardmask.toml").write_text('targets = ["outside"]\n')
    inner = folder / "repository" / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert found() is None, "without a repository, only the working folder counts"
    (folder / "repository" / ".git").mkdir()
    assert found() is None, "what is outside the repository is not read"
    (folder / "repository" / "pyproject.toml").write_text('[tool.hardmask]\ntargets = ["k.py:f", "numpy"]\n')
    config = found()
    assert config is not None
    assert config.targets == ("../../k.py:f", "numpy"), "a file is named by its way from the working folder"
    assert config.name == os.path.join("..", "..", "pyproject.toml")
    (folder / "repository" / "a" / "pyproject.toml").write_text("[project]\nname = 'hardmask-user'\n")
    assert found() == config, "a pyproject.toml without the table is passed by"
    (folder / "repository" / "hardmask.toml").write_text('targets = ["first"]\n')
    config = found()
    assert config is not None
    assert config.targets == ("first",), "hardmask.toml comes before pyproject.toml"


def test_the_command_line_comes_first() -> None:
    Path("hardmask.toml").write_text(WHOLE)
    whole = asked()
    assert whole.values == {
        "targets": ("numpy", "kernel.py:mine"), "contract": "zero", "require": ("isolation",), "specimens": True,
        "dtypes": ("float32", "float16"), "effort": "smoke", "rounds": 2, "seed": 7,
    }  # fmt: skip
    assert (whole.restricted, whole.partial, len(whole.rules)) == (False, False, 5)
    other = asked(("numpy",), effort="deep", seed=0)
    assert (other.values["targets"], other.values["effort"], other.values["seed"]) == (("numpy",), "deep", 0)
    assert (other.restricted, other.partial) == (True, True)
    same = asked(effort="smoke", seed=7, dtypes=("float32", "float16"))
    assert not same.partial, "what the file says as well narrows nothing"
    bare = asked(("numpy",), search=False)
    assert (bare.values["effort"], bare.values["seed"], bare.values["dtypes"]) == ("default", 0, DTYPES)
    assert (bare.configuration, bare.rules) == (None, ())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("target = []", "hardmask.toml: there is no key 'target'. Did you mean 'targets'?"),
        ("zzz = 1", "hardmask.toml: there is no key 'zzz'. Choose from: targets, require, dtypes, contract"),
        ("seed = true", "hardmask.toml: 'seed' must be a whole number, not true or false."),
        ("seed = -1", "hardmask.toml: 'seed' must be a whole number from 0, below 2^63."),
        ("targets = 'numpy'", "hardmask.toml: 'targets' must be a list of texts, not text."),
        ("targets = [1]", "hardmask.toml: 'targets' must be a list of texts, not a number."),
        ("effort = 'heroic'\ntargets=['numpy']", "hardmask.toml: 'effort': There is no effort 'heroic'. Choose from:"),
        ("contract = 'mean'\ntargets=['numpy']", "hardmask.toml: 'contract': "),
        ("dtypes = ['int8']\ntargets=['numpy']", "hardmask.toml: 'dtypes': There is no dtype 'int8'."),
        ("require = ['all']\ntargets=['numpy']", "hardmask.toml: 'require': There is no requirement 'all'."),
        ("targets = []", "Nothing to certify: name an adapter, a subject or a file."),
        ("[deviation]\nsubject='a'", "hardmask.toml: 'deviation' must be tables. Write '[[deviation]]' above each."),
        ("deviation = [1]", "hardmask.toml: 'deviation' must be tables."),
        (RULE.replace('"c"', '""'), "hardmask.toml, deviation 1 (a) has an empty 'reason'. Say why"),
        (RULE.replace('"c"', '" \\n "'), "hardmask.toml, deviation 1 (a) has an empty 'reason'. Say why"),
        (RULE.replace('reason = "c"\n', ""), "hardmask.toml, deviation 1 (a) has no 'reason'. Say why"),
        (RULE + RULE.replace("expires = 2030-01-31\n", "").replace('"a"', '"x"'), "deviation 2 (x) has no 'expires'."),
        (RULE.replace("2030-01-31", '"2030-02-30"'), "'expires' is no day. Write the last day"),
        (RULE.replace("2030-01-31", '"20300131"'), "'expires' is no day."),
        (RULE.replace("2030-01-31", "2030-01-31T00:00:00"), "'expires' is no day."),
        (RULE.replace("2030-01-31", "2030"), "'expires' is no day."),
        (RULE.replace('subject = "a"\n', ""), "hardmask.toml, deviation 1 names no 'subject'."),
        (RULE.replace('declaration = "b"\n', ""), "deviation 1 (a) names no 'declaration'."),
        (RULE + 'declarations = ["x"]\n', "deviation 1 (a) has both 'declaration' and 'declarations'. Keep one."),
        (RULE + 'dtype = "half"\n', "deviation 1 (a): there is no dtype 'half'. Choose from: float64"),
        (
            RULE + 'link = "javascript:alert(1)"\n',
            "the 'link' 'javascript:alert(1)' is no address. Begin it with https",
        ),
        (RULE + 'because = "x"\n', "hardmask.toml, deviation 1: there is no key 'because'."),
        (RULE + "family = 3\n", "'family' must be text in quotes, not a number."),
        (RULE + RULE, "hardmask.toml: two deviations are about a on b. Delete one."),
    ],
)
def test_a_mistake_is_a_sentence_that_names_file_key_and_mend(text: str, sentence: str) -> None:
    Path("hardmask.toml").write_text(text)
    result = CliRunner().invoke(main, ["certify"])
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr


def test_other_places_of_a_configuration() -> None:
    Path("pyproject.toml").write_text("[tool.hardmask]\nefort = 'smoke'\n")
    Path("other").mkdir()
    Path("other/pyproject.toml").write_text("[tool.black]\n")
    for arguments, sentence in [
        ([], "pyproject.toml, [tool.hardmask]: there is no key 'efort'. Did you mean 'effort'?"),
        (["--config", "other/pyproject.toml"], "there is no table [tool.hardmask]. Add it, or name another file."),
        (["--config", "none.toml"], "The configuration 'none.toml' cannot be read: No such file or directory."),
        (["--config", "other"], "The configuration 'other' cannot be read: Is a directory."),
        (["--no-config"], "Or list 'targets' in hardmask.toml, or in [tool.hardmask] of pyproject.toml, here."),
        (["numpy", "--config", os.devnull], "it is no regular file."),
    ]:
        result = CliRunner().invoke(main, ["certify", *arguments])
        assert result.exit_code == 2, result.output
        assert sentence in result.stderr


def broken() -> Iterator[tuple[str, bytes]]:
    """Files that no run may accept."""
    for share in range(1, 40):
        # A line that is cut off, or a table without what it needs.
        cut = len(WHOLE) * share // 40
        if not _whole(WHOLE[:cut]):
            yield f"cut after {cut}", WHOLE[:cut].encode()
    kinds = ("1", "1.5", "true", '"text"', "[]", "[[1]]", "{}", "2030-01-01", "12:00:00", "nan", "-inf", "9" * 5000)
    good = {"targets": ("[]",), "contract": ('"text"',), "require": ("[]",), "specimens": ("true",), "effort": (),
            "dtypes": ("[]",), "rounds": ("1",), "seed": ("1",), "deviation": ("[]",)}  # fmt: skip
    for key in KEYS:
        for kind in kinds:
            if kind not in (*good[key], '"text"'):
                yield f"{key} = {kind[:20]}", f"{key} = {kind}\n".encode()
        yield f"{key} twice", f"{key} = 1\n{key} = 1\n".encode()
    for key in ("subject", "declaration", "reason", "link", "family", "dtype", "expires"):
        rest = "\n".join(line for line in RULE.splitlines() if not line.startswith(f"{key} "))
        for kind in ("1", "true", "[1]", "{a = 1}", "12:00:00"):
            yield f"deviation {key} = {kind}", f"{rest}\n{key} = {kind}\n".encode()
        yield f"deviation with markup in {key}", f"{rest}\n{key} = {json.dumps(MARKUP)}\n".encode()
    yield "markup in a key", f"{json.dumps(MARKUP)} = 1\n".encode()
    yield "markup in a target", f"targets = [{json.dumps(MARKUP)}]\n".encode()
    yield "markup in a table", f"[{json.dumps(MARKUP)}]\n".encode()
    yield "raw control characters", f"{MARKUP} = 1\n".encode()
    yield "a long key", b"a" * 100_000 + b" = 1\n"
    yield "an array in an array in …", b"targets = " + b"[" * 50_000
    yield "a table in a table in …", b"targets = " + b"{a=" * 50_000
    yield "a key in a key in …", b"a." * 50_000 + b"a = 1\n"
    yield "a header in a header in …", b"[" + b"a." * 50_000 + b"a]\n"
    yield "too many dots", b"a." * (DEEPEST + 1) + b"a = 1\n"
    yield "a huge file", b"# " + b"x" * LARGEST
    yield "a table twice", b"[a]\n[a]\n"
    yield "a key and a table", b"deviation = 1\n[[deviation]]\n"
    for encoding in ("utf-16", "utf-32", "utf-16-le"):
        yield encoding, WHOLE.encode(encoding)
    yield "Latin-1", 'targets = ["é"]'.encode("latin-1")
    yield "a byte order mark", b"\xef\xbb\xbf" + WHOLE.encode()
    yield "null bytes", b"\x00" * 100
    yield "JSON", b'{"targets": ["numpy"]}'
    yield "random bytes", bytes(range(256))


def _whole(text: str) -> bool:
    """Whether a beginning of the file ends behind a value, where nothing is missing."""
    lines = text.splitlines()
    return not text or ("[[deviation]]" not in text and (text.endswith("\n") or lines[-1] in WHOLE.splitlines()))


BROKEN = list(broken())


def test_there_are_many_broken_files() -> None:
    assert len(BROKEN) >= 150
    assert len({content for _, content in BROKEN}) >= 145


@pytest.mark.parametrize(("name", "content"), BROKEN, ids=[name for name, _ in BROKEN])
def test_a_broken_file_is_a_printable_sentence(name: str, content: bytes) -> None:
    Path("hardmask.toml").write_bytes(content)
    with pytest.raises(ConfigurationError) as problem:
        read("hardmask.toml")
    text = str(problem.value)
    assert "hardmask.toml" in text
    assert text.isprintable(), text
    assert text.endswith((".", "?")), text
    assert len(text) < 700


@pytest.mark.parametrize(("name", "content"), BROKEN[::12], ids=[name for name, _ in BROKEN[::12]])
def test_a_broken_file_ends_the_command_with_2(name: str, content: bytes) -> None:
    Path("hardmask.toml").write_bytes(content)
    result = CliRunner().invoke(main, ["certify", "numpy.softmax-where"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
