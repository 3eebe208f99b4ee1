"""What a target means, and every sentence that says why one cannot be judged."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from hardmask.adapters import Adapter, Subject, TargetError, available, registry, resolve, resolve_all, versions

MINE = """
from hardmask.adapters import Subject
import neighbour

def softmax(scores, mask):
    return scores

def optional(scores, mask, axis=-1):
    return scores

one = Subject("mine.one", softmax, contract="nan")
two = Subject("mine.two", softmax, role="specimen")
both = [one, two]

def factory(): return one
def several(extra=None): return (one, two)
def broken(): raise RuntimeError("no such weights\\nsecond line")
def number(): return 5
def three(a, b, c): return a
empty = []
mixed = [one, 7]
constant = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with a file of the user's and its neighbour."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "neighbour.py").write_text("")
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("hardmask_target_") or name in ("mine", "neighbour"):
            del sys.modules[name]


def ids(*targets: str, specimens: bool = False) -> list[str]:
    return [s.id for s in resolve(targets, specimens=specimens)]


def refusal(*targets: str) -> str:
    with pytest.raises(TargetError) as raised:
        resolve(targets)
    return str(raised.value)


# Names, ids and globs


def test_an_adapter_gives_its_subjects_and_its_specimens_only_when_asked() -> None:
    plain, every = ids("numpy"), ids("numpy", specimens=True)
    assert plain[:2] == ["numpy.softmax-where", "numpy.fill-inf"]
    assert set(every) - set(plain) == {s.id for s in resolve(["numpy.*"]) if s.role == "specimen"}
    assert len(every) - len(plain) == 9


def test_an_id_or_a_glob_names_specimens_too() -> None:
    assert ids("numpy.reject") == ["numpy.reject"]
    assert ids("numpy.zero-*") == ["numpy.zero-with-flag", "numpy.zero-without-flag"]
    assert ids("numpy.?eject") == ["numpy.reject"]
    assert ids("nump*.fill-inf") == ["numpy.fill-inf"]


def test_duplicates_collapse_and_the_order_is_kept() -> None:
    assert ids("numpy.reject", "numpy.softmax-where", "numpy.r*", "numpy.softmax-where") == [
        "numpy.reject",
        "numpy.softmax-where",
        "numpy.replace-min",
    ]


@pytest.mark.jax
def test_brackets_in_an_id_are_ordinary_characters() -> None:
    assert ids("jax.softmax-where[jit]") == ["jax.softmax-where[jit]"]
    assert ids("jax.*[eager]") == ["jax.softmax-where[eager]"]


@pytest.mark.jax
@pytest.mark.torch
def test_a_glob_over_all_adapters() -> None:
    assert ids("*.softmax-where*") == [
        "numpy.softmax-where",
        "torch.softmax-where",
        "torch.softmax-where[dim=0]",
        "torch.softmax-where[compile]",
        "jax.softmax-where[eager]",
        "jax.softmax-where[jit]",
    ]


def test_unknown_targets_get_close_matches() -> None:
    assert refusal("nunpy") == "There is no target 'nunpy'. Did you mean 'numpy'?"
    assert refusal("zzz") == "There is no target 'zzz'. Run 'hardmask list' to see them all."
    assert refusal("numpy.rejekt") == (
        "There is no target 'numpy.rejekt'. Did you mean 'numpy.reject' or 'numpy.replace-min'?"
    )
    assert refusal("numpy.q*") == "No subject matches 'numpy.q*'. Run 'hardmask list' to see the ids."
    assert refusal("mine.py") == "'mine.py' names a file but no object in it. Write 'mine.py:NAME'."


# Files and modules


def test_a_plain_function_becomes_a_forward_only_subject() -> None:
    (subject,) = resolve(["mine.py:softmax"])
    assert subject.id == "mine.softmax"
    assert subject.methods == ("forward",)
    assert subject.adapter == "user"
    assert subject.dtypes == ("float32", "float64")
    assert subject.contract == "zero"
    assert subject.unsupported["vjp"] == (
        "A plain function has no derivative; wrap it in a Subject with vjp= to have one judged."
    )
    assert ids("mine.py:optional") == ["mine.optional"]


def test_subjects_lists_and_factories() -> None:
    assert ids("mine.py:one") == ["mine.one"]
    assert ids("mine.py:both") == ["mine.one", "mine.two"]
    assert ids("mine.py:factory") == ["mine.one"]
    assert ids("mine.py:several") == ["mine.one", "mine.two"]
    assert ids("mine.py:one", "mine.py:both", "mine.py:factory") == ["mine.one", "mine.two"]


def test_a_module_and_a_path(folder: Path) -> None:
    assert ids("mine:one") == ["mine.one"]
    assert ids(f"{folder}/mine.py:softmax") == ["mine.softmax"]
    assert str(folder) not in sys.path


def test_a_builtin_without_a_signature_is_a_plain_function(folder: Path) -> None:
    (folder / "ufunc.py").write_text("import numpy as np\nmultiply = np.multiply\n")
    (subject,) = resolve(["ufunc.py:multiply"])
    assert subject.forward(np.ones((1, 2)), np.ones((1, 2), bool)).tolist() == [[1, 1]]  # type: ignore[union-attr]


def test_an_edited_file_is_read_anew(folder: Path) -> None:
    path = folder / "edit.py"
    path.write_text("from hardmask.adapters import Subject\na = Subject('edit.first', abs)\n")
    assert ids("edit.py:a") == ["edit.first"]
    path.write_text("from hardmask.adapters import Subject\na = Subject('edit.second', abs)\n")
    os.utime(path, ns=(1, 1))
    assert ids("edit.py:a") == ["edit.second"]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("mine.py:softmex", "'mine.py' defines no 'softmex'. Did you mean 'softmax'?"),
        ("mine.py:constan", "'mine.py' defines no 'constan'. Check the name after the colon."),
        ("mine.py:neighbor", "'mine.py' defines no 'neighbor'. Check the name after the colon."),
        ("mine.py:bath", "'mine.py' defines no 'bath'. Did you mean 'both'?"),
        ("mine.py:onee", "'mine.py' defines no 'onee'. Did you mean 'one'?"),
        ("mine.py:qqqq", "'mine.py' defines no 'qqqq'. Check the name after the colon."),
        ("mine.py:", "'mine.py:' names no object. Write 'file.py:object' or 'module:object'."),
        (
            "mine.py:constant",
            "'constant' in 'mine.py' is of type int, which cannot be judged. "
            "Give a Subject, a list of Subjects, or a function f(scores, mask).",
        ),
        ("mine.py:empty", "'empty' in 'mine.py' is an empty list. Put at least one Subject into it."),
        (
            "mine.py:mixed",
            "'mixed' in 'mine.py' is a list that holds a int. Wrap every item in a Subject or an Attention.",
        ),
        (
            "mine.py:three",
            "'three' in 'mine.py' takes (a, b, c), so it is neither f(scores, mask) nor a function without arguments "
            "that returns Subjects. Give it one of these signatures.",
        ),
        (
            "mine.py:broken",
            "'broken' in 'mine.py' takes no argument, so it was called to get Subjects, and raised RuntimeError: "
            "no such weights. Mend it, or give a function f(scores, mask).",
        ),
        (
            "mine.py:number",
            "'number' in 'mine.py' takes no argument and returned int. "
            "Return a Subject or a list of Subjects, or give a function f(scores, mask).",
        ),
        (
            "nowhere:f",
            "There is no module 'nowhere' on the import path. "
            "Install it, run from its folder, or name the file as 'path/file.py:object'.",
        ),
        (
            "os.nowhere:f",
            "There is no module 'os.nowhere' on the import path. "
            "Install it, run from its folder, or name the file as 'path/file.py:object'.",
        ),
    ],
)
def test_sentences_about_the_users_code(target: str, sentence: str) -> None:
    assert refusal(target) == sentence


def test_a_file_that_is_not_there(folder: Path) -> None:
    assert refusal("lost.py:f") == f"There is no file 'lost.py'. Check the path, which is read from '{folder}'."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyError", "KeyError"),
        ("def f(:", "SyntaxError: invalid syntax (bad.py, line 1)"),
        (
            "from hardmask.adapters import Subject\nSubject('a', abs, contract='zeros')",
            "ValueError: There is no empty-row contract 'zeros'. "
            "Choose one of: zero, zero+valid, nan, reject, fallback(KEY)",
        ),
    ],
)
def test_an_exception_while_importing(folder: Path, text: str, said: str) -> None:
    (folder / "bad.py").write_text(text)
    assert refusal("bad.py:f") == f"Importing 'bad.py' raised {said}. Mend the code, or install what it needs."
    if "Syntax" not in said:
        assert refusal("bad:f") == f"Importing 'bad' raised {said}. Mend the code, or install what it needs."


def test_two_subjects_of_one_name(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "mine.py").write_text("def softmax(scores, mask): return scores\n")
    assert refusal("mine.py:softmax", "deep/mine.py:softmax") == (
        "Two different subjects are called 'mine.softmax'. Rename one, or run them one after the other."
    )


# Frameworks that are absent, and adapters that packages register


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch and JAX look as if they were not installed."""
    found = registry.find_spec
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name in ("torch", "jax") else found(name))


@pytest.mark.usefixtures("absent")
def test_a_missing_framework() -> None:
    torch = (
        "The target 'torch' needs torch, which is not installed. Install the build of PyTorch that you want certified "
        "first (https://pytorch.org/get-started), then run: pip install 'hardmask[torch]'"
    )
    assert refusal("torch") == torch
    assert refusal("torch.softmax-where") == torch
    assert refusal("jax.*") == "The target 'jax' needs jax, which is not installed. Run: pip install 'hardmask[jax]'"
    assert ids("*.softmax-where*") == ["numpy.softmax-where"]
    lines = {line.adapter: line for line in available()}
    assert (lines["torch"].installed, lines["torch"].subjects, lines["torch"].problem) == (False, (), torch)
    assert lines["numpy"].installed
    assert lines["numpy"].version == np.__version__
    assert lines["numpy"].problem is None
    every = resolve_all(["numpy"], specimens=True)
    assert [s.id for s in lines["numpy"].subjects] == [s.id for s in every]
    assert ids("numpy", specimens=True) == [s.id for s in every if isinstance(s, Subject)]


def test_numpy_alone_loads_no_framework() -> None:
    program = (
        "import sys; from hardmask.adapters import resolve, versions; s = resolve(['numpy']); "
        "print('numpy' in versions(s), sorted({'torch', 'jax', 'sympy', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "True []\n"


def register(monkeypatch: pytest.MonkeyPatch, folder: Path, **entries: str) -> None:
    """Register entry points as an installed package would: with a dist-info folder on the import path."""
    info = folder / "extra-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.5\n")
    lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[hardmask.adapters]\n{lines}\n")
    (folder / "extra.py").write_text(
        "from hardmask.adapters import Subject\n"
        "def softmax(scores, mask): return scores\n"
        "listed = [Subject('extra.a', softmax), Subject('extra.b', softmax, role='specimen')]\n"
        "def made(): return listed\n"
        "astray = [Subject('other.a', softmax)]\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "extra", raising=False)
    importlib.invalidate_caches()


@pytest.mark.parametrize("value", ["extra:listed", "extra:made"])
def test_a_registered_adapter(monkeypatch: pytest.MonkeyPatch, folder: Path, value: str) -> None:
    register(monkeypatch, folder, extra=value)
    (subject,) = resolve(["extra"])
    assert (subject.id, subject.adapter) == ("extra.a", "extra")
    assert ids("extra.*") == ["extra.a", "extra.b"]
    assert ids("extra.b") == ["extra.b"]
    assert versions([subject]) == {"extra": "1.5"}
    line = next(line for line in available() if line.adapter == "extra")
    assert (line.installed, line.version, len(line.subjects)) == (True, "1.5", 2)


def test_a_registered_adapter_that_takes_a_name(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    register(monkeypatch, folder, numpy="extra:listed")
    assert refusal("numpy") == (
        "The entry point 'extra:listed' registers an adapter called 'numpy', a name that is taken. "
        "Rename the entry point, or uninstall its package."
    )


def test_a_registered_adapter_with_ids_of_another(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    register(monkeypatch, folder, extra="extra:astray")
    assert refusal("extra") == (
        "The adapter 'extra' offers a subject called 'other.a', which a target could not name. "
        "Its id has to begin with 'extra.'."
    )


def test_a_registered_adapter_that_does_not_load(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    register(monkeypatch, folder, extra="lost_package:listed")
    sentence = (
        "Loading the adapter 'extra' raised ModuleNotFoundError: No module named 'lost_package'. "
        "Mend or uninstall the package that registers it."
    )
    assert refusal("extra") == sentence
    line = next(line for line in available() if line.adapter == "extra")
    assert (line.installed, line.problem) == (True, sentence)


def test_versions_of_the_users_own_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    user = Subject("mine.f", lambda scores, mask: scores)
    installed = {"jax": "3", "numpy": "1", "torch": "2"}

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(registry, "version", version)
    found = versions([user])
    assert found == installed
    assert list(found) == sorted(found)


@pytest.mark.torch
@pytest.mark.jax
def test_versions_of_the_users_own_subject_need_no_import() -> None:
    program = (
        "import sys; from hardmask.adapters import Subject, versions; v = versions([Subject('mine.f', abs)]); "
        "print({'numpy', 'torch', 'jax', 'jaxlib'} - set(v), {'torch', 'jax'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "set() set()\n"


@pytest.mark.jax
def test_versions_of_jax() -> None:
    import jax

    assert versions(resolve(["jax"]))["jax"] == jax.__version__


def test_an_adapter_is_a_plain_record() -> None:
    assert Adapter("numpy", ".numpy_rows", ("numpy",)).missing is None
    assert Adapter("none", ".none_rows", ("no_such_framework",)).missing == "no_such_framework"
