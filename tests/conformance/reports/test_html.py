"""The HTML report: what it says, that it is well formed, accessible and closed, and how it looks in a browser."""

from __future__ import annotations

import base64
import hashlib
import html as escapes
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from pathlib import Path

import html5lib
import msgspec
import pytest
from click.testing import CliRunner

from hardmask.conformance.cli import main
from hardmask.conformance.finding import combine
from hardmask.conformance.reports import Outcome
from hardmask.conformance.reports.kill_table import kill_table
from hardmask.conformance.reports.page import html as page_of
from hardmask.conformance.reports.page.view import WORDS

replace = msgspec.structs.replace
ALL = ["failing", "passing", "deviating", "hostile"]


def parsed(outcome: Outcome) -> ET.Element:
    """The page, read by the rules of HTML; a single parse error fails."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    root: ET.Element = parser.parse(page_of(outcome).decode())
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


@pytest.fixture(params=ALL)
def outcome(request: pytest.FixtureRequest) -> Outcome:
    found: Outcome = request.getfixturevalue(request.param)
    return found


def text_of(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def named(root: ET.Element, section: str) -> ET.Element:
    found = root.find(f".//section[@aria-labelledby='{section}']")
    assert found is not None, section
    return found


def test_nothing_on_the_page_runs_or_comes_from_elsewhere(outcome: Outcome) -> None:
    root = parsed(outcome)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"} & {
        element.tag for element in root.iter()
    }
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on"), name
            assert name not in ("style", "src", "srcset", "xlink:href", "srcdoc", "action"), name
            if name == "href":
                assert element.tag == "a"
                assert value.startswith(("#", "https://example.org/")), value
    (style,) = (element.text or "" for element in root.iter("style"))
    assert not re.search(r"url\(|@import|expression", style)
    (policy,) = (e.get("content", "") for e in root.iter("meta") if e.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}';" in policy


def test_the_page_can_be_used_without_eyes_or_mouse(outcome: Outcome) -> None:
    root = parsed(outcome)
    assert root.get("lang") == "en"
    assert [len(list(root.iter(tag))) for tag in ("h1", "header", "main", "footer", "nav", "title")][:5] == [1] * 5
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    level = 0
    for element in root.iter():
        if re.fullmatch("h[1-6]", str(element.tag)):
            assert int(element.tag[1]) <= level + 1, text_of(element)
            level = int(element.tag[1])
            assert text_of(element)
        for name in ("aria-labelledby", "aria-describedby"):
            assert set((element.get(name) or "").split()) <= set(ids)
        if element.tag == "a" and (element.get("href") or "").startswith("#"):
            assert element.get("href", "")[1:] in ids
    for table in root.iter("table"):
        caption = table.find("caption")
        assert caption is not None
        assert text_of(caption)
        assert all(head.get("scope") in ("col", "row") for head in table.iter("th"))
        widths = {len(row) for row in table.iter("tr")}
        assert len(widths) == 1, text_of(caption)
    regions = [e for e in root.iter("div") if e.get("class") == "scroll"]
    assert regions
    assert all((e.get("role"), e.get("tabindex")) == ("region", "0") and e.get("aria-label") for e in regions)
    for picture in root.iter("svg"):
        assert picture.get("role") == "img"
        assert [child.tag for child in picture][:2] == ["title", "desc"]


def themes() -> Iterator[dict[str, str]]:
    """The colours of each theme."""
    style = (
        Path(sys.modules["hardmask.conformance.reports.page.html"].__file__ or "").with_name("style.css").read_text()
    )
    blocks = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    assert len(blocks) == 3
    yield from blocks


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_what_is_behind_it_in_both_themes() -> None:
    pairs = [(ink, ground) for ink in ("fg", "muted", "accent", "pass", "fail", "warn") for ground in ("bg", "panel")]
    pairs += [(kind, f"{kind}-bg") for kind in ("pass", "fail", "warn")] + [("fg", "pass-bg"), ("fg", "fail-bg")]
    for theme in themes():
        for ink, ground in pairs:
            darker, lighter = sorted((luminance(theme[ink]), luminance(theme[ground])))
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (ink, ground, theme)


def test_the_matrix_says_what_the_findings_come_to(failing: Outcome) -> None:
    root = parsed(failing)
    by_cell: dict[tuple[str, str], list[str]] = {}
    for f in failing.certificate.findings:
        short = f.declaration if ":" in f.declaration else f.declaration.rpartition(".")[2]
        by_cell.setdefault((f.subject, short), []).append(f.verdict)
    seen = set()
    for table in named(root, "matrix").iter("table"):
        heads = [text_of(head) for head in table.findall("thead/tr/th")][1:]
        for row in table.findall("tbody/tr"):
            theorem = text_of(row[0])
            for head, cell in zip(heads, row[1:], strict=True):
                verdict = combine(by_cell.get((f"numpy.{head}", theorem), []))  # type: ignore[arg-type]
                assert WORDS[verdict] in text_of(cell), (head, theorem)
                seen.add((f"numpy.{head}", theorem))
    assert seen >= by_cell.keys()


def test_everything_stays_in_the_denominator(outcome: Outcome) -> None:
    section = named(parsed(outcome), "matrix")
    counts = next(e for e in section.iter("ul") if e.get("class") == "counts")
    numbers = [int(text_of(b).replace(",", "")) for b in counts.iter("b")]
    assert sum(numbers) == len(outcome.certificate.findings)
    assert f"{sum(numbers):,} findings" in text_of(section)


def test_a_failure_is_drawn_and_its_numbers_are_exact(failing: Outcome) -> None:
    root = parsed(failing)
    article = next(a for a in root.iter("article") if "empty-row" in text_of(a[0]) and "replace-min" in text_of(a[0]))
    shown = next(
        f.minimal
        for f in failing.certificate.findings
        if f.subject == "numpy.replace-min" and f.declaration == "extension:empty-row" and f.minimal
    )
    hexadecimal = [text_of(e) for e in article.iter("span") if e.get("class") == "hex"]
    assert set(shown.scores or ()) | set(shown.returned or ()) <= set(hexadecimal)
    svg = article.find(".//svg")
    assert svg is not None
    bars = [r for r in svg.iter("rect") if r.get("class") == "returned" and float(r.get("y", "0")) != 140]
    assert len(bars) == shown.keys
    assert "hardmask replay certificate.json" in text_of(article)


def test_the_histograms_are_pictures_with_their_numbers(failing: Outcome) -> None:
    figures = list(named(parsed(failing), "errors").iter("figure"))
    assert len(figures) == len(failing.certificate.subjects)
    for figure in figures:
        path = next(p for p in figure.iter("path") if p.get("class") == "bars")
        assert path.get("d", "").count("M") == 6
        assert [label.text for label in figure.iter("text")] == ["-1", "0", "1"]
        assert "1 %: -0.3 · 50 %: 0 · 99 %: 0.5" in text_of(figure)
        assert "1,111 entries of 70 rows, from -0.4 to 1.7 ULP; 600 exact; 1 not finite" in text_of(figure)


def test_deviations_show_reason_link_and_end(deviating: Outcome) -> None:
    root = parsed(deviating)
    assert root.find(".//section[@aria-labelledby='failures']") is None
    section = named(root, "deviations")
    (link,) = section.iter("a")
    assert link.get("href") == "https://example.org/1?a=b&c=d"
    for word in ("fixed upstream", "2027-01-31", "used"):
        assert word in text_of(section)


def test_it_ends_with_what_it_does_not_show_and_says_how_it_was_made(passing: Outcome) -> None:
    root = parsed(passing)
    sections = list(root.iter("section"))
    assert sections[-1].get("aria-labelledby") == "not-shown"
    assert [text_of(item) for item in sections[-1].iter("li")] == passing.certificate.not_shown
    run = text_of(named(root, "run"))
    assert "hardmask certify numpy.softmax-where --effort smoke --dtype float32 --seed 0" in run
    assert passing.certificate.digest in run
    assert kill_table().summary in text_of(named(root, "worth"))


def test_hostile_text_stays_text(hostile: Outcome) -> None:
    page = page_of(hostile).decode()
    assert all(c.isprintable() or c == "\n" for c in page)
    root = parsed(hostile)
    shown = text_of(root)
    for text in ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "]]> --> </style></svg></details>"):
        assert text in shown
        assert text not in page
    assert "{{ 7 * 7 }} {% raw %}" in shown


def test_a_witness_that_contradicts_itself_is_left_out(failing: Outcome) -> None:
    def broken(scores: list[str], keys: int) -> Outcome:
        findings = [
            replace(f, minimal=None, witness=replace(f.witness, scores=scores, keys=keys))
            if f.verdict == "fail" and f.witness is not None
            else f
            for f in failing.certificate.findings
        ]
        return Outcome(replace(failing.certificate, findings=findings), 1, failing.reason)

    for scores, keys in ((["0x1.0000000000000p+9999"] * 2, 2), (["nan"], 5), ([], 0), (["inf"] * 2, 2)):
        assert parsed(broken(scores, keys)).find(".//article") is not None


def test_the_page_of_a_whole_framework_stays_small(failing: Outcome) -> None:
    certificate = failing.certificate
    copies = range(30)
    subjects = [replace(s, id=f"{s.id}[{i}]") for s in certificate.subjects for i in copies]
    findings = [replace(f, subject=f"{f.subject}[{i}]") for f in certificate.findings for i in copies]
    page = page_of(Outcome(replace(certificate, subjects=subjects, findings=findings), 1, "Not certified."))
    assert len(findings) > 50_000
    assert len(page) < 3_000_000


def test_without_jinja2_there_is_a_sentence_before_anything_is_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    words = ["certify", "numpy.softmax-where", "--effort", "smoke", "--jobs", "1", "--html", str(tmp_path / "x.html")]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "python -m pip install 'hardmask[report]'" in result.stderr


HARNESS = """<!DOCTYPE html><meta charset="utf-8"><body><iframe width="{width}" height="800" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const inner = document.querySelector("iframe").contentWindow, root = inner.document.documentElement;
  inner.document.querySelectorAll("details").forEach(d => d.open = true);
  const out = {{ scroll: root.scrollWidth, client: root.clientWidth,
    requests: inner.performance.getEntriesByType("resource").length,
    background: inner.getComputedStyle(inner.document.body).backgroundColor,
    regions: [...inner.document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).length }};
  document.body.textContent = "RESULT" + JSON.stringify(out) + "END";
}});
</script>"""


def browse(browser: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the browser without a window, a network or a profile of its own."""
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += ["--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={folder / 'profile'}"]
    command += ["--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.chromium
@pytest.mark.parametrize("name", ["failing", "hostile"])
def test_a_phone_shows_the_page_without_sideways_scrolling(
    name: str, chromium: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = page_of(request.getfixturevalue(name)).decode()
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(width=360, page=escapes.escape(page)))
    done = browse(chromium, tmp_path, "--virtual-time-budget=5000", "--dump-dom", harness.as_uri())
    found = re.search("RESULT(.*?)END", done.stdout)
    assert found, done.stdout[-500:]
    seen = msgspec.json.decode(escapes.unescape(found[1]))
    assert seen["scroll"] <= seen["client"] <= 360
    assert seen["regions"] > 0, "the wide tables scroll inside their regions"
    assert seen["requests"] == 0
    assert seen["background"] == "rgb(255, 255, 255)", "the style sheet is allowed by the page's own policy"


@pytest.mark.chromium
def test_the_browser_draws_the_page_and_complains_of_nothing(failing: Outcome, chromium: str, tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_bytes(page_of(failing))
    done = browse(chromium, tmp_path, f"--screenshot={picture}", "--window-size=1200,1600", page.as_uri())
    assert "CONSOLE" not in done.stderr
    assert len(set(lines_of(picture.read_bytes()))) > 200, "the page is not blank"


def lines_of(png: bytes) -> list[bytes]:
    """The lines of a picture, as they are filtered before compression."""
    assert png.startswith(b"\x89PNG")
    at, data, width, height, channels = 8, b"", 0, 0, 3
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            channels = {2: 3, 6: 4}[body[9]]
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    raw = zlib.decompress(data)
    step = 1 + channels * width
    assert len(raw) == step * height
    return [raw[i : i + step] for i in range(0, len(raw), step)]
