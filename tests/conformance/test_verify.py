"""``hardmask verify``: what is right is verified, and what was changed is named, whoever recomputed the digest."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result

from hardmask.adapters.attention import Attention
from hardmask.adapters.numpy_attention import attention, attention_jvp, attention_vjp
from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.registry import resolve_all
from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import digest_of, fields, read, sealed, write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate, ErrorRecord, OutputRecord
from hardmask.conformance.exhaustive import Enumeration
from hardmask.conformance.verification.histograms import check_histograms
from hardmask.conformance.verification.ledger import Ledger
from hardmask.conformance.verification.verify import verify

Content = dict[str, Any]


def output(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    return attention(q, k, v, mask, scale).output


def uneven(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    """Off by a thousandth."""
    return (output(q, k, v, mask, scale) * 1.001).astype(q.dtype)


def off(scores: Any, mask: Any) -> Any:
    return (softmax_where(scores, mask).weights * 1.25).astype(scores.dtype)


def skewed(scores: Any, mask: Any, vector: Any) -> Any:
    """A derivative that is wrong, and not symmetric."""
    exact = softmax_where_derivative(scores, mask, vector)
    return (exact * (1 + np.arange(exact.shape[-1]) / 64)).astype(exact.dtype)


SUBJECTS = (
    Subject("test.off", off, vjp=skewed, jvp=softmax_where_derivative),
    Attention("test.uneven", uneven, attention_vjp, attention_jvp),
)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """Subjects that pass, are permitted and fail, rows and attention."""
    named = ["numpy.softmax-where", "numpy.fill-inf", "numpy.replace-min", "numpy.zero-without-flag", "numpy.attention"]
    subjects = [*resolve_all(named), *SUBJECTS]
    request = Request(tuple(s.id for s in subjects), effort="smoke", dtypes=("float32",))
    return certify(request, subjects=subjects).certificate


@pytest.fixture(scope="module")
def content(certificate: Certificate) -> Content:
    return fields(certificate)


def resealed(content: Content) -> Certificate:
    """The certificate that an attacker would write, with a digest that is right."""
    return sealed(msgspec.convert(content, Certificate))


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def test_what_is_right_is_verified(certificate: Certificate) -> None:
    found = verify(certificate)
    assert found.problems == []
    assert found.certified is False
    assert "test.off" in found.says
    failing = [f for f in certificate.findings if f.verdict == "fail"]
    rows = [f for f in failing if f.witness is not None and f.witness.scores is not None]
    small = [f for f in failing if f.attention is not None]
    quantities = {f.witness.quantity for f in rows if f.witness is not None}
    assert quantities == {"weights", "vjp", "row sum", "inner product", "difference", "valid"}
    flagless = [f for f in rows if f.diagnosis == "no valid flag"]
    assert found.recomputed["rows of findings"] == len(rows) - len(flagless)
    assert found.recomputed["smallest rows"] == sum(f.minimal is not None for f in failing) > 5
    assert found.recomputed["rows built again from the seed"] > 1000
    assert len(small) > 3
    in_full = [f for f in failing if f.attention is not None and f.attention.q is not None]
    assert len(in_full) > 0
    assert found.recomputed["problems in the certificate (attention)"] > 0
    assert found.recomputed["problems built again from the seed (attention)"] > 100
    assert any(reason.startswith("passes:") for reason in found.open)


def test_other_runs_are_verified_too(tmp_path: Path) -> None:
    """A contract, promises and a dtype of one's own choice; a custom model; a sweep; a search; a run cut short."""
    custom = replace(SUBJECTS[0], id="test.custom", vjp=None, jvp=None, model={"alpha": 100.0, "argument": "exp2"})
    runs = [
        certify(Request(("numpy.fill-inf",), contract="zero", effort="smoke", dtypes=("bfloat16",))),
        certify(Request(("numpy.reject", "numpy.fallback"), require=("isolation",), effort="smoke")),
        certify(Request(("a",), effort="smoke", dtypes=("float16", "float32")), subjects=[custom]),
        certify(Request(("numpy.replace-min",), enumeration=Enumeration(("float16",), fraction=0.0001))),
        certify(Request(("a",), effort="deep", dtypes=("float32",), rounds=1), subjects=[custom], minimise=False),
    ]

    def cut(event: object) -> None:
        raise KeyboardInterrupt

    runs.append(certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)), listen=cut))
    for run in runs:
        write(run.certificate, tmp_path / "c.json")
        found = verify(read(tmp_path / "c.json"))
        assert found.problems == [], run.certificate.request
        assert found.certified == (run.exit_code == 0)


def first(content: Content, **wanted: Any) -> Content:
    """The first finding whose fields have the given values; ``quantity`` is that of its witness."""
    quantity = wanted.pop("quantity", None)

    def fits(f: Content) -> bool:
        shown = f["witness"] or f["attention"] or {}
        full = "scores" in shown or "q" in shown or f["verdict"] != "fail"
        return all(f[k] == v for k, v in wanted.items()) and full and quantity in (None, shown.get("quantity"))

    found: Content = next(f for f in content["findings"] if fits(f))
    return found


def row(content: Content, quantity: str, **wanted: Any) -> Content:
    """The first failing finding on a row, of which the error is a number."""
    return next(
        f
        for f in content["findings"]
        if f["verdict"] == "fail"
        and f["budget"]
        and f["witness"]
        and f["witness"].get("quantity") == quantity
        and all(f[k] == v for k, v in wanted.items())
    )


def returned(content: Content) -> Content:
    f = row(content, "weights")
    at = f["witness"]["index"]
    f["witness"]["returned"][at] = float(np.float32(float.fromhex(f["witness"]["returned"][at]) * 1.5)).hex()
    return f


def returned_right(content: Content) -> Content:
    """The true weights in the place of those that were returned: a failure that is none."""
    f = row(content, "weights")
    w = f["witness"]
    scores = np.array([[float.fromhex(s) for s in w["scores"]]], np.float32)
    true = softmax_where(scores, np.array([w["mask"]])).weights[0].astype(float)
    w["returned"] = [x.hex() for x in true.tolist()]
    exact = float(w["exact"][w["index"]].split(" ")[0])
    f["error"] = abs(float(true[w["index"]]) - exact)
    f["ratio"] = f["error"] / f["budget"]
    return f


def wider(content: Content) -> Content:
    f = row(content, "weights")
    f["budget"] *= 8.0
    f["ratio"] = f["error"] / f["budget"]
    return f


def enclosed(content: Content) -> Content:
    f = row(content, "weights")
    f["enclosure"] = ["0.0", "1.0"]
    return f


def shifted_truth(content: Content) -> Content:
    f = row(content, "weights")
    f["witness"]["exact"][f["witness"]["index"]] = "0.25"
    return f


def passed(content: Content) -> Content:
    """A failing witness under a verdict of pass."""
    f = row(content, "row sum")
    f.update(verdict="pass", failed=0, ratio=0.5)
    return f


def passed_without_numbers(content: Content) -> Content:
    """The same, with the witness of a pass, and an error that the true budget would not admit."""
    f = row(content, "weights")
    w = f["witness"]
    f.update(verdict="pass", failed=0, diagnosis="", enclosure=None, minimal=None)
    f["witness"] = {name: w[name] for name in ("batch", "row", "keys", "index")}
    f["budget"], f["ratio"] = f["error"] * 1.25, 0.8
    return f


def counted(content: Content) -> Content:
    f = first(content, verdict="fail")
    f["failed"] = f["checked"] + 1
    return f


def not_failed(content: Content) -> Content:
    f = first(content, verdict="pass")
    f["failed"] = 1
    return f


def renamed(content: Content) -> Content:
    f = first(content, verdict="fail")
    f["id"] = "0" * 12
    return f


def weaker(content: Content) -> Content:
    f = row(content, "weights")
    f["tier"] = "lse"
    return f


def another_family(content: Content) -> Content:
    f = first(content, verdict="pass", family="ties")
    f["family"] = "wide"
    return f


def another_row(content: Content) -> Content:
    """Scores that the seed does not give."""
    f = next(f for f in content["findings"] if f["verdict"] == "fail" and False in (f["witness"] or {}).get("mask", []))
    w = f["witness"]
    w["scores"][w["mask"].index(False)] = "0x1.8000000000000p+0"
    return f


def granted(content: Content) -> Content:
    """More than its budget for a row that passed."""
    f = next(f for f in content["findings"] if f["verdict"] == "pass" and f["budget"] and f["witness"])
    f["budget"] *= 4.0
    return f


def no_empty_row(content: Content) -> Content:
    """An empty row where the theorem needs an allowed key."""
    f = row(content, "row sum")
    f["witness"]["mask"] = [False] * f["witness"]["keys"]
    return f


def kept_contract(content: Content) -> Content:
    f = next(
        f for f in content["findings"] if f["verdict"] == "fail" and f["witness"] and not any(f["witness"]["mask"])
    )
    f["witness"]["returned"] = ["0x0.0p+0"] * f["witness"]["keys"]
    return f


def derivative(content: Content) -> Content:
    f = row(content, "vjp")
    at = f["witness"]["index"]
    f["witness"]["returned"][at] = float(np.float32(float.fromhex(f["witness"]["returned"][at]) + 64.0)).hex()
    return f


def inner(content: Content) -> Content:
    f = row(content, "inner product")
    f["error"], f["ratio"] = f["error"] * 2.0, f["ratio"] * 2.0
    return f


def apart(content: Content) -> Content:
    f = row(content, "difference")
    f["witness"]["other"] = f["witness"]["returned"]
    return f


def minimal(content: Content) -> Content:
    f = next(f for f in content["findings"] if f["minimal"] and f["minimal"].get("budget"))
    f["minimal"]["error"] *= 2.0
    return f


def measured(content: Content) -> Content:
    m = next(m for m in content["measured"] if m.get("witness"))
    m["budget"] /= 4.0
    return {"id": f"measured ({m['subject']}"}


def another_quantity(content: Content) -> Content:
    """A difference that nobody can recompute, in the place of weights."""
    f = row(content, "weights")
    f["witness"].update(quantity="difference", other=f["witness"]["returned"])
    return f


def of_attention(content: Content) -> Content:
    """The first failing finding on an output, of which the error is a number, and the problem is shown."""

    def fits(f: Content) -> bool:
        shown = f["attention"] or {}
        return f["verdict"] == "fail" and bool(f["budget"] and shown.get("q")) and shown["quantity"] == "output"

    found: Content = next(f for f in content["findings"] if fits(f))
    return found


def attended(content: Content) -> Content:
    f = of_attention(content)
    f["attention"]["returned"] = float(np.float32(float.fromhex(f["attention"]["returned"]) + 4.0)).hex()
    return f


def attended_wider(content: Content) -> Content:
    f = of_attention(content)
    for part in (f, f["attention"]):
        part["budget"] *= 16.0
    f["ratio"] = f["error"] / f["budget"]
    return f


def attended_truth(content: Content) -> Content:
    f = of_attention(content)
    f["attention"]["exact"] = f["enclosure"] = ["-1.0", "1.0"]
    return f


def attended_elsewhere(content: Content) -> Content:
    """Queries that the seed does not give."""
    f = of_attention(content)
    f["attention"]["q"] = [float(np.float32(float.fromhex(x) + 1.0)).hex() for x in f["attention"]["q"]]
    return f


def attended_granted(content: Content) -> Content:
    """More than its budget for a problem that passed."""
    f = next(
        f
        for f in content["findings"]
        if f["verdict"] == "pass" and f["attention"] and f["attention"]["quantity"] == "output" and f["budget"]
    )
    f["budget"] *= 4.0
    return f


TAMPERED: dict[str, tuple[Callable[[Content], Content], str]] = {
    "a returned value": (returned, "The error is"),
    "right values under a failure": (returned_right, "this is no failure"),
    "a wider budget": (wider, "The budget under 'strict' is"),
    "a wide enclosure": (enclosed, "it is not within"),
    "another true value": (shifted_truth, "and not 0.25"),
    "pass for a failing row": (passed, "this is a failure"),
    "pass, and no numbers": (passed_without_numbers, "at most, and not"),
    "more failures than rows": (counted, "rows failed of"),
    "a failed row in a pass": (not_failed, "1 rows failed, and the verdict is 'pass'"),
    "another id": (renamed, "Its id should be"),
    "a weaker tier": (weaker, "It was judged by 'lse'"),
    "another family": (another_family, "and not 'wide'"),
    "a row that the seed does not give": (another_row, "as the seed gives it"),
    "a wider budget for a pass": (granted, "at most, and not"),
    "an unmet hypothesis": (no_empty_row, "does not meet the hypotheses"),
    "a contract that was kept": (kept_contract, "keeps the contract"),
    "a returned derivative": (derivative, "The error is"),
    "the error of a pair": (inner, "The error is"),
    "two answers that do not differ": (apart, "The error is"),
    "another quantity": (another_quantity, "does not compare the quantity 'difference'"),
    "the error of a smallest row": (minimal, "The error is"),
    "the budget of a measured tier": (measured, "The budget under 'strict' is"),
    "a returned output": (attended, "The error is"),
    "a wider budget of attention": (attended_wider, "The budget"),
    "an enclosure of attention": (attended_truth, "it is not within"),
    "a problem that the seed does not give": (attended_elsewhere, "as the seed gives it"),
    "a wider budget for a pass of attention": (attended_granted, "at most, and not"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_change_is_named_although_the_digest_is_right(name: str, content: Content) -> None:
    changed = copy.deepcopy(content)
    change, sentence = TAMPERED[name]
    about = change(changed)
    certificate = resealed(changed)
    assert certificate.digest == digest_of(certificate) != content["digest"]
    found = verify(certificate)
    told = [p for p in found.problems if sentence in p.sentence]
    assert told, found.problems[:3]
    if sentence != "Its id should be":
        assert any(about["id"] in p.where for p in told), told[:3]


def drop_subject(content: Content) -> None:
    content["subjects"] = content["subjects"][1:]


def whitewash(content: Content) -> None:
    next(s for s in content["subjects"] if s["id"] == "test.off")["verdict"] = "pass"


def drop_findings(content: Content) -> None:
    """All that a subject failed on, and the verdict that is left."""
    name = "test.off"
    content["findings"] = [f for f in content["findings"] if (f["subject"], f["verdict"]) != (name, "fail")]
    next(s for s in content["subjects"] if s["id"] == name)["verdict"] = "pass"


def another_claim(content: Content) -> None:
    next(iter(content["declarations"].values()))["fingerprint"] = "0" * 64


def other_words(content: Content) -> None:
    next(iter(content["declarations"].values()))["plain"] = "All is well."


def unknown_declaration(content: Content) -> None:
    content["declarations"]["extension:trust-me"] = {"statement": "", "plain": "", "fingerprint": ""}


def no_caveat(content: Content) -> None:
    content["not_shown"] = content["not_shown"][:1]


def deviation(content: Content) -> None:
    first(content, verdict="fail")["deviation"] = {"reason": "It is known.", "link": "", "expires": ""}


def twice(content: Content) -> None:
    content["findings"].append(content["findings"][0])


def strongest(content: Content) -> None:
    next(m for m in content["measured"] if m.get("witness"))["strongest"] = "strict"


def lost_output(content: Content) -> None:
    f = content["findings"][0]
    record = OutputRecord(
        subject=f["subject"],
        dtype=f["dtype"],
        quantity="weights",
        family="a family that is not there",
        batches=1,
        rows=1,
        declarations=[f["declaration"]],
        sha256="0" * 64,
    )
    content["outputs"] = [msgspec.to_builtins(record)]


def other_request(content: Content) -> None:
    content["request"]["require"] = ["everything"]


WHOLE: dict[str, tuple[Callable[[Content], None], str]] = {
    "a subject that is not listed": (drop_subject, "the certificate does not list it"),
    "a better verdict of a subject": (whitewash, "come to 'fail', and not to 'pass'"),
    "findings that were taken out": (drop_findings, "it was taken out"),
    "another fingerprint": (another_claim, "The claim was another one"),
    "other words for a claim": (other_words, "its words are not those of the claim"),
    "a declaration of one's own": (unknown_declaration, "has no such declaration"),
    "a caveat less": (no_caveat, "A sentence is missing"),
    "a deviation that nobody recorded": (deviation, "failures are let pass"),
    "a finding twice": (twice, "2 findings have this id"),
    "a stronger tier than holds": (strongest, "'strict' is said to hold"),
    "an output without its finding": (lost_output, "there is no finding on it"),
    "a request that no run can have": (other_request, "No run can have been asked for this"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_part_that_contradicts_another_is_named(name: str, content: Content) -> None:
    changed = copy.deepcopy(content)
    change, sentence = WHOLE[name]
    change(changed)
    found = verify(resealed(changed))
    assert any(sentence in p.sentence for p in found.problems), found.problems[:3]


def test_rows_drawn_elsewhere_are_no_problem_and_are_told(content: Content) -> None:
    """Another NumPy may draw other numbers: then a row is not tied to the seed, and the report says so."""
    changed = copy.deepcopy(content)
    another_row(changed)
    changed["environment"]["libraries"]["numpy"] = "1.0"
    found = verify(resealed(changed))
    assert not [p for p in found.problems if "as the seed gives it" in p.sentence]
    assert any(reason.startswith("rows that the seed gives otherwise here") for reason in found.open)


GOOD = ErrorRecord(
    subject="test.off",
    declaration="extension:row-sum",
    dtype="float32",
    entries=12,
    unusable=2,
    rows=3,
    effective_rows=2.5,
    least=-0.46,
    largest=0.2,
    counts={"-0.5": 2, "0": 5, "0.125": 1, "0.25": 2},
    quantiles={"1": -0.45, "50": 0.0, "99": 0.19},
)


def test_a_histogram_that_is_one_is_accepted(certificate: Certificate) -> None:
    ledger = Ledger()
    check_histograms(msgspec.structs.replace(certificate, errors=[GOOD]), ledger)
    assert (ledger.problems, ledger.checked["histograms: sums, edges, quantiles"]) == ([], 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"entries": 13}, "are not 13"),
        ({"entries": 10**9}, "entries were judged"),
        ({"rows": 10**9}, "1000000000 rows, and"),
        ({"effective_rows": 4.0}, "More rows count than there are"),
        ({"declaration": "extension:trust-me"}, "12 errors, and 0 entries were judged"),
        ({"counts": {"-0.5": 2, "0": 5, "0.3": 3}}, "'0.3' is no edge"),
        ({"counts": {"-0.5": 2, "0": 5, "much": 3}}, "'much' is no edge"),
        ({"least": -0.6}, "not in the lowest bin"),
        ({"largest": 0.1}, "not in the highest bin"),
        ({"least": None}, "The extreme errors are missing"),
        ({"quantiles": {"50": 0.2}}, "The quantile of 50 %"),
        ({"quantiles": {"1": 0.0, "50": -0.4}}, "less than one before it"),
        ({"quantiles": {"101": 0.2}}, "no quantile of 101 %"),
        ({"quantiles": {"half": 0.2}}, "of no percentage"),
    ],
)
def test_a_histogram_that_contradicts_itself_is_named(
    changes: dict[str, Any], sentence: str, certificate: Certificate
) -> None:
    ledger = Ledger()
    wrong = msgspec.structs.replace(GOOD, **changes)
    check_histograms(msgspec.structs.replace(certificate, errors=[wrong]), ledger)
    assert any(sentence in p.sentence for p in ledger.problems), ledger.problems


def test_the_command_tells_what_it_did_and_writes_it_down(certificate: Certificate, tmp_path: Path) -> None:
    file, record = tmp_path / "c.json", tmp_path / "v.json"
    write(certificate, file)
    result = invoked(file, "--json", record)
    assert result.exit_code == 0, result.output
    assert result.output.endswith("Verified: nothing in it contradicts what it says.\n")
    for title in ("agrees", "recomputed, by ", "could not be recomputed"):
        assert f"\n{title}" in result.output
    content = json.loads(record.read_text())
    assert (content["verified"], content["certified"], content["problems"]) == (True, False, [])
    assert content["recomputed"]["rows of findings"] > 10


def test_the_command_names_the_finding_and_exits_1(content: Content, tmp_path: Path) -> None:
    changed = copy.deepcopy(content)
    about = returned(changed)
    write(resealed(changed), tmp_path / "c.json")
    result = invoked(tmp_path / "c.json")
    assert result.exit_code == 1
    assert f"  {about['id']} ({about['subject']} · " in result.output
    assert result.output.endswith("Not verified: one thing does not hold.\n")
    assert result.stderr == ""


def test_it_needs_no_framework(certificate: Certificate, tmp_path: Path) -> None:
    """Nothing that a certificate names is imported, and no framework is."""
    write(certificate, tmp_path / "c.json")
    script = (
        "import sys\n"
        "from hardmask.conformance.cli import main\n"
        "try:\n"
        "    main(['verify', 'c.json'])\n"
        "except SystemExit as end:\n"
        "    print(end.code)\n"
        "print(sorted({'torch', 'jax', 'flax', 'onnxruntime', 'onnx'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"], done.stdout + done.stderr
