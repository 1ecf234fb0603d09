"""Every relative link of a Markdown page leads to a file of the repository, and to a heading of it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not in a clone: what is tracked is not known")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def links(text: str) -> Iterator[str]:
    """Targets of links outside of code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    yield from (target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target)


def headings(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in links(page.read_text()):
        name, _, place = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (place and file.suffix == ".md" and place not in headings(file.read_text())):
            dead.append(target)
    return dead


def test_every_relative_link_leads_somewhere() -> None:
    assert {str(page.relative_to(ROOT)): dead for page in pages() if (dead := dead_links(page))} == {}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# One, two\n[x](gone.md) [y](#one-two) [z](#three) `[q](no.md)` [h](https://example.com/)\n")
    assert dead_links(page) == ["gone.md", "#three"]
