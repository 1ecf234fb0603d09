"""The repository cites nothing outside of itself: facts stand in `docs/facts`, under headings, with their sources."""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FACTS = ROOT / "docs/facts"
CITATION = re.compile(r"docs/facts/([\w-]+\.md)#([\w-]+)")
OWN_PAGE = re.compile(r"docs/(?:adr|facts)/[\w-]+\.md")
OWN_TEST = re.compile(r"`(tests/[\w/.-]+)`")
# A letter in brackets, so that no pattern finds itself here.
FORBIDDEN = [
    r"(?<![\w-])[n]otes/",
    r"\b(?:of|in) the [n]otes\b",
    r"\b[D]ESIGN\b",
    r"\b[t]he seeds\b",
    r"\b[s]eeds?/\d",
    r"\b[s]eed's\b",
    r"\b[s]eeds'",
    r"\b[h]ouse\.md\b",
    r"\b[s]ecurity\.md\b",
    r"\b[w]hatif(?:-2)?\.md\b",
    r"\b[w]hat-if contract\b",
]


@cache
def texts() -> dict[str, str]:
    """Every tracked text file by its path."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not in a clone: what is tracked is not known")
    found: dict[str, str] = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            found[name] = data.decode(errors="replace")
    return found


def anchor(heading: str) -> str:
    """The heading as GitHub makes it the end of an address."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def sections(page: str) -> list[tuple[str, str]]:
    """Heading and text of every section of a page of facts."""
    parts = re.split(r"^#{2,6} (.+)$", page, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def facts() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(FACTS.glob("*.md"))}


def dead_citations(text: str, anchors: dict[str, set[str]]) -> list[str]:
    return [match[0] for match in CITATION.finditer(text) if match[2] not in anchors.get(match[1], set())]


def forbidden(text: str) -> list[str]:
    return [match[0] for pattern in FORBIDDEN for match in re.finditer(pattern, text)]


def without_source(page: str) -> list[str]:
    return [heading for heading, text in sections(page) if len(re.findall(r"^Source: \S", text, re.MULTILINE)) != 1]


def test_every_citation_leads_to_a_heading() -> None:
    anchors = {name: {anchor(heading) for heading, _ in sections(page)} for name, page in facts().items()}
    assert {name: dead for name, text in texts().items() if (dead := dead_citations(text, anchors))} == {}


def test_every_page_that_is_named_exists() -> None:
    named = {(name, page) for name, text in texts().items() for page in OWN_PAGE.findall(text)}
    assert sorted(f"{name}: {page}" for name, page in named if not (ROOT / page).is_file()) == []


def test_nothing_outside_of_the_repository_is_cited() -> None:
    assert {name: found for name, text in texts().items() if (found := forbidden(text))} == {}


@pytest.mark.parametrize("name", facts())
def test_every_fact_has_a_heading_of_its_own_and_a_source(name: str) -> None:
    page = facts()[name]
    assert without_source(page) == []
    assert [a for a, count in Counter(anchor(heading) for heading, _ in sections(page)).items() if count > 1] == []
    assert [test for test in OWN_TEST.findall(page) if not (ROOT / test).exists()] == []


def test_every_fact_is_cited_and_every_page_is_in_the_list() -> None:
    cited = {(m[1], m[2]) for text in texts().values() for m in CITATION.finditer(text)}
    known = {(name, anchor(heading)) for name, page in facts().items() for heading, _ in sections(page)}
    assert sorted(known - cited) == []
    assert {name for name in facts() if name != "README.md" and f"]({name})" not in facts()["README.md"]} == set()


@pytest.mark.parametrize(
    ("heading", "want"),
    [
        ("Balanced taking", "balanced-taking"),
        ("Rule 4: one eviction of one pod", "rule-4-one-eviction-of-one-pod"),
        ("NUMA-aware headroom", "numa-aware-headroom"),
        ("Koordinator's `batch-cpu`, and more", "koordinators-batch-cpu-and-more"),
    ],
)
def test_an_anchor_is_made_as_github_makes_it(heading: str, want: str) -> None:
    assert anchor(heading) == want


def test_what_is_wrong_is_found() -> None:
    assert dead_citations("see docs/facts/" + "a.md#gone, docs/facts/" + "a.md#here.", {"a.md": {"here"}}) == [
        "docs/facts/" + "a.md#gone"
    ]
    for text in ("notes" + "/nats.md", "DES" + "IGN section 2", "as the " + "seeds print", "the see" + "ds' machine"):
        assert forbidden(text), text
    assert without_source("# A\n\n## One\n\nfact\n\nSource: x\n\n## Two\n\nfact\n") == ["Two"]
