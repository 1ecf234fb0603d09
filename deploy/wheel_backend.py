"""Builds the wheel so that it owns one top-level name: `services` and `shared` travel inside `sublet`.

A wheel is built from a copy of the tree in which the two folders are `sublet/_services` and `sublet/_shared`, and every
import of them says so (docs/adr/0015-one-name-in-the-wheel.md). Editable installs and source distributions are made by
setuptools from the tree as it is.
"""

import ast
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
)

__all__ = (
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
)

OWNER = "sublet"
MOVED = {"services": "_services", "shared": "_shared"}
"""Top-level packages of the tree, and what each is called inside `sublet`."""
BESIDE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements/run.in",
    "requirements/authors.in",
    "requirements/kube.in",
    "requirements/trace.in",
)
"""What the build reads besides the packages."""

Settings = Mapping[str, object] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:  # noqa: ARG001
    """Nothing beyond `build-system.requires`."""
    return []


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,  # noqa: ARG001
) -> str:
    """Build the wheel; the file's name. There is no hook for metadata alone, so that it always comes from the copy."""
    goal = Path(wheel_directory).resolve()
    with tempfile.TemporaryDirectory(prefix="sublet-wheel-") as folder:
        copy_tree(Path.cwd(), Path(folder))
        with _working_in(Path(folder)):
            name: str = build_meta.build_wheel(str(goal), config_settings)
    return name


def copy_tree(source: Path, goal: Path) -> None:
    """Copy what the wheel is made of, with the packages where they are in the wheel.

    Raises:
        ValueError: a module imports one of them in a way that cannot be rewritten; the message names the line.
    """
    for name in BESIDE:
        (goal / name).parent.mkdir(exist_ok=True)
        shutil.copy(source / name, goal / name)
    for name, place in {OWNER: OWNER, **{old: f"{OWNER}/{new}" for old, new in MOVED.items()}}.items():
        shutil.copytree(source / name, goal / place, ignore=shutil.ignore_patterns("__pycache__"))
    _record_revision(source, goal / OWNER / MOVED["shared"] / "build.py")
    for path in (goal / OWNER).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(rewritten(text, str(path.relative_to(goal))), encoding="utf-8")


def _record_revision(source: Path, module: Path) -> None:
    """Write into the copy which revision it was made of; nothing where git does not know."""
    git = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    with suppress(OSError):
        told = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        if re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?", told):
            module.write_text(module.read_text().replace('REVISION = ""', f'REVISION = "{told}"', 1))


def rewritten(text: str, where: str) -> str:
    """The module with every import of a moved package under its new name; no other byte of it changes.

    Raises:
        ValueError: `import shared.core` would bind the old name: want `from shared import core`.
    """
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        for old, new in _changes(node, where):
            line = lines[node.lineno - 1]
            # Columns are of the encoded line.
            head, rest = (
                part.decode() for part in (line.encode()[: node.col_offset], line.encode()[node.col_offset :])
            )
            lines[node.lineno - 1] = head + re.sub(old, new, rest, count=1)
    return "".join(lines)


def _changes(node: ast.AST, where: str) -> Iterator[tuple[str, str]]:
    """Pattern and replacement, at the start of an import."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        top = (node.module or "").partition(".")[0]
        if top in MOVED:
            yield rf"^from\s+{top}\b", f"from {OWNER}.{MOVED[top]}"
    elif isinstance(node, ast.Import):
        for alias in node.names:
            top, _, below = alias.name.partition(".")
            if top not in MOVED:
                continue
            if below or alias.asname or len(node.names) > 1:
                raise ValueError(f"{where}:{node.lineno}: want 'from {top} import …', the wheel renames the package")
            yield rf"^import\s+{top}\b", f"from {OWNER} import {MOVED[top]} as {top}"


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
