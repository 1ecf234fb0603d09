"""The site of the documentation: every page has its place, the reference is the code's, no block types what is gone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from blocks import FIRST_SUCCESS, IN_FIVE_MINUTES, RUN_BY, SECTION_RUN_BY, blocks, report, sublet_words, wrong_words
from build_site import sources
from navigation import NAVIGATION, Tree
from wrong_inputs import application

ROOT = Path(__file__).parents[3]
WITHOUT_A_PLACE = {"README.md", "examples/consumers/README.md"}
"""The first is the site's front page; the second is reached from the page on subscribing."""


def places(tree: Tree) -> Iterator[str]:
    for inner in tree.values():
        yield from [inner] if isinstance(inner, str) else places(inner)


def test_every_page_has_one_place_in_the_navigation() -> None:
    found = list(places(NAVIGATION))
    assert sorted(found) == sorted(set(found))
    assert {str(page) for page in sources()} - WITHOUT_A_PLACE == set(found) - {"index.md"}


def test_the_committed_reference_is_what_the_code_gives(tmp_path: Path) -> None:
    """After a change of commands, messages, kinds or rights: make reference."""
    subprocess.run([sys.executable, "docs/site/reference.py", str(tmp_path)], cwd=ROOT, check=True)
    made = {page.name: page.read_text() for page in tmp_path.iterdir()}
    assert made == {page.name: page.read_text() for page in (ROOT / "docs/reference").iterdir()}, "run make reference"


def test_no_code_block_of_a_page_is_wrong() -> None:
    lines, wrong = report()
    assert wrong == []
    assert len(lines) > 5


@pytest.mark.parametrize(("page", "test"), RUN_BY.items())
def test_a_page_that_is_typed_is_named_by_its_test(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.parametrize(("section", "test"), SECTION_RUN_BY.items())
def test_a_section_that_is_typed_has_blocks_and_is_named_by_its_test(section: tuple[str, str], test: str) -> None:
    page, heading = section
    assert section in {(block.page, block.heading) for block in blocks()}
    said = (ROOT / test).read_text()
    assert Path(page).name in said
    assert heading.partition(",")[0] in said


def test_first_successes_are_typed_by_their_test() -> None:
    assert IN_FIVE_MINUTES.pattern in (ROOT / FIRST_SUCCESS).read_text()


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("sublet statu", "no command 'statu'"),
        ("sudo -E sublet status --nope", "no option --nope"),
        ("sublet run --foo -- sleep -x 3", "no option --foo"),
        ("sublet run -- sleep -x 3", ""),
        ("X=1 .venv/bin/sublet config aply -f x", "no command 'aply'"),
        ("kubectl sublet get pods -w | head", ""),
        ("sublet get pods && sublet replay FILE --polcy x  # a comment", "no option --polcy"),
        ("echo sublet nope", ""),
    ],
)
def test_what_is_typed_in_a_block_is_read_as_the_parser_does(typed: str, wrong: str) -> None:
    group = typer.main.get_group(application())
    said = "; ".join(wrong_words(words, group) for words in sublet_words(typed))
    assert (wrong in said) if wrong else said.strip("; ") == ""
