"""`docs/architecture.md`: the paths that it names exist, and each word of its glossary stands there once, in order."""

import re
import subprocess
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/architecture.md"
MOST_WORDS = 50
TOP = {path.name for path in ROOT.iterdir()} - {"out"}
"""Not what tests and benchmarks leave."""


def named_paths(text: str) -> list[str]:
    """What stands in backticks, or in a picture, and begins as a path of the repository does."""
    words = re.findall(r"`([^`\n]+)`", text) + re.findall(r"(?<![\w/`])[\w.-]+/[\w./-]*\w", text)
    return sorted({word for word in words if word.partition("/")[0] in TOP})


def glossary(text: str) -> list[tuple[str, str]]:
    """Word and meaning of each row."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text.partition("## Glossary")[2], re.MULTILINE)
    return [row for row in rows if row != ("word", "meaning")]


def faults(rows: Iterable[tuple[str, str]]) -> list[str]:
    words = [word.casefold() for word, _ in rows]
    found = [f"{word} stands there twice" for word in sorted({word for word in words if words.count(word) > 1})]
    found += [f"{later} stands behind {word}" for word, later in pairwise(words) if later < word]
    return found + ([f"{len(words)} words, want at most {MOST_WORDS}"] if len(words) > MOST_WORDS else [])


def test_every_path_that_the_page_names_exists() -> None:
    paths = named_paths(PAGE.read_text())
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_file_inside_the_two_folders_that_grow_is_named() -> None:
    assert [path for path in named_paths(PAGE.read_text()) if re.match(r"shared/(core|adapters)/.", path)] == []


def test_the_glossary_is_short_in_order_and_says_each_word_once() -> None:
    rows = glossary(PAGE.read_text())
    assert len(rows) > 20
    assert faults(rows) == []


def test_every_folder_with_code_has_its_place_on_the_page() -> None:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "shared", "services", "sublet"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not in a clone: what is tracked is not known")
    folders = {"/".join(name.split("/")[:2]) for name in listed.stdout.splitlines() if name.count("/") > 1}
    assert sorted(folders - set(named_paths(PAGE.read_text()))) == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("a", "x"), ("b", "x")], []),
        ([("b", "x"), ("A", "x")], ["a stands behind b"]),
        ([("a", "x"), ("a", "y")], ["a stands there twice"]),
        ([(f"w{n:02}", "x") for n in range(51)], ["51 words, want at most 50"]),
    ],
)
def test_what_is_wrong_with_a_glossary_is_found(rows: list[tuple[str, str]], says: list[str]) -> None:
    assert faults(rows) == says


def test_a_path_that_does_not_exist_is_found() -> None:
    assert named_paths("see `shared/gone.py`, not `out/x`, and shared/core: pure") == ["shared/core", "shared/gone.py"]
