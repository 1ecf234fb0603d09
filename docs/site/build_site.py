"""`make docs`: the pages of the repository as a site that needs no network, with every link checked.

    python docs/site/build_site.py out/docs

Writes the pages and a configuration of the generator (zensical) into that folder. Pages stay where they are in the
repository, so that their links hold on GitHub and here; a link to code, or to a folder, becomes one to a page that is
made for it.
"""

import re
import shutil
import sys
from functools import partial
from pathlib import Path

from navigation import NAVIGATION, Tree

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md")
PAGES_ELSEWHERE = ("deploy/compose/README.md", "examples/consumers/README.md")
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
CONFIG = """\
[project]
site_name = "Sublet"
site_description = "Batch work on the CPU and memory that online services leave idle"
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
font = false
features = ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
"""


def sources() -> list[Path]:
    """The pages of the site, relative to the repository."""
    elsewhere = [Path(name) for name in (*ROOT_PAGES, *PAGES_ELSEWHERE) if (ROOT / name).is_file()]
    return elsewhere + sorted(page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md"))


def write_pages(goal: Path) -> None:
    """Copy every page, and what it shows or leads to."""
    pages = set(sources())
    for page in pages:
        target = goal / page
        target.parent.mkdir(parents=True, exist_ok=True)
        follow = partial(_followed, page=page, pages=pages, goal=goal)
        # Links in code are examples, not links.
        pieces = CODE.split((ROOT / page).read_text())
        pieces[::2] = [LINK.sub(follow, prose) for prose in pieces[::2]]
        target.write_text("".join(pieces))
    (goal / "index.md").write_text((goal / "README.md").read_text())


def _followed(link: re.Match[str], *, page: Path, pages: set[Path], goal: Path) -> str:
    """The target as the site has it; what it leads to is copied."""
    target, place = link[1], link[2] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    found = (ROOT / page.parent / target).resolve()
    inside = found.relative_to(ROOT)
    if inside in pages:
        return link[0]
    if not found.exists():
        raise SystemExit(f"{page}: {target} leads nowhere")
    if found.is_dir():
        _write_listing(goal / inside / "index.md", found, goal)
        return f"{target.rstrip('/')}/index.md"
    _copy(found, goal)
    return f"{target}{place}"


def _write_listing(goal: Path, folder: Path, pages: Path) -> None:
    """A page for a folder: the first line of each page in it, else its files."""
    lines = [f"# {folder.relative_to(ROOT)}", ""]
    for one in sorted(folder.iterdir()):
        if one.suffix == ".md":
            title = one.read_text().splitlines()[0].lstrip("# ")
            lines.append(f"- [{title}]({one.name})")
        elif one.is_file():
            _copy(one, pages)
            lines.append(f"- [{one.name}]({one.name})")
        elif any(one.glob("*.md")):
            lines.append(f"- {one.name}/")
    goal.parent.mkdir(parents=True, exist_ok=True)
    goal.write_text("\n".join(lines) + "\n")


def _copy(file: Path, pages: Path) -> None:
    target = pages / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


def as_toml(tree: Tree) -> str:
    """The navigation as the generator's configuration has it."""
    rows = (f'{{ "{title}" = {as_toml(inner) if isinstance(inner, dict) else f"{inner!r}"} }}'
            for title, inner in tree.items())  # fmt: skip
    return f"[{', '.join(rows)}]"


def main(folder: Path) -> None:
    """Write pages and configuration."""
    shutil.rmtree(folder, ignore_errors=True)
    write_pages(folder / "pages")
    (folder / "zensical.toml").write_text(CONFIG.format(nav=as_toml(NAVIGATION)))
    print(f"{folder}: {len(sources())} pages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
