"""Builds the wheel so that it owns one top-level name: `services` and `shared` travel inside `sublet`.

A wheel is built from a copy of the tree in which the two folders are `sublet/_services` and `sublet/_shared`, and every
import of them says so (docs/adr/0015-one-name-in-the-wheel.md). A source distribution is the tree as it is. Editable
installs are made by setuptools.

Two builds of one commit give the same bytes: times in both archives are SOURCE_DATE_EPOCH, or the commit's.
"""

import ast
import gzip
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
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

EPOCH = "SOURCE_DATE_EPOCH"
EARLIEST_S = 315532800
"""1980-01-01: a zip archive cannot say an earlier time."""

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
    goal, epoch = Path(wheel_directory).resolve(), epoch_s(Path.cwd())
    with tempfile.TemporaryDirectory(prefix="sublet-wheel-") as folder:
        copy_tree(Path.cwd(), Path(folder))
        with _working_in(Path(folder)), _dated(epoch):
            name: str = build_meta.build_wheel(str(goal), config_settings)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build the source distribution; the file's name. It records the revision: an unpacked one cannot ask git."""
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    archive, root = Path(sdist_directory) / name, name.removesuffix(".tar.gz")
    revision = revision_of(Path.cwd())
    with tarfile.open(archive) as made:
        files = {member.name: (member, _content(made, member)) for member in made.getmembers() if member.isfile()}
    build = f"{root}/shared/build.py"
    files[build] = (files[build][0], _with_revision(files[build][1].decode(), revision).encode())
    write_archive(archive, {path: (data, member.mode) for path, (member, data) in files.items()}, epoch_s(Path.cwd()))
    return name


def write_archive(goal: Path, files: Mapping[str, tuple[bytes, int]], epoch: int) -> None:
    """Write a `.tar.gz` that depends on its arguments alone: files by path with content and mode, and their time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (data, mode) in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mtime, member.mode = len(data), epoch, 0o755 if mode & 0o100 else 0o644
            archive.addfile(member, io.BytesIO(data))
    with goal.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as zipped:
        zipped.write(packed.getvalue())


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


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
    build = goal / OWNER / MOVED["shared"] / "build.py"
    build.write_text(_with_revision(build.read_text(), revision_of(source)))
    for path in filter(Path.is_file, goal.rglob("*")):
        path.chmod(0o644)  # whatever the umask of whoever made the checkout
    for path in (goal / OWNER).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(rewritten(text, str(path.relative_to(goal))), encoding="utf-8")


def revision_of(source: Path) -> str:
    """Which commit a checkout is of, `-dirty` behind it where files differ; "" where git does not know."""
    told = _git(source, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return told if re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?", told) else ""


def epoch_s(source: Path) -> int:
    """The time that what is built of a checkout bears: SOURCE_DATE_EPOCH, else its commit's, else the earliest."""
    told = os.environ.get(EPOCH) or _git(source, "log", "-1", "--format=%ct")
    return max(int(told), EARLIEST_S) if told.isdecimal() else EARLIEST_S


def _git(source: Path, *words: str) -> str:
    with suppress(OSError):
        return subprocess.run(
            ["git", "-C", str(source), *words], capture_output=True, text=True, check=False
        ).stdout.strip()
    return ""


def _with_revision(text: str, revision: str) -> str:
    """The module `shared.build` with the revision in it; one that is there stays."""
    return text.replace('REVISION = ""', f'REVISION = "{revision}"', 1)


def rewritten(text: str, where: str) -> str:
    """The module with every import of a moved package under its new name; no other byte of it changes.

    Raises:
        ValueError: `import shared.core` would bind the old name: want `from shared import core`.
    """
    lines = text.splitlines(keepends=True)
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
    for node in imports:
        for old, new in _changes(node, where):
            line = lines[node.lineno - 1]
            # Columns are of the encoded line.
            head, rest = (
                part.decode() for part in (line.encode()[: node.col_offset], line.encode()[node.col_offset :])
            )
            lines[node.lineno - 1] = head + re.sub(old, new, rest, count=1)
    return "".join(lines)


def _changes(node: ast.Import | ast.ImportFrom, where: str) -> Iterator[tuple[str, str]]:
    """Pattern and replacement, at the start of an import."""
    if isinstance(node, ast.ImportFrom):
        top = (node.module or "").partition(".")[0]
        if top in MOVED and not node.level:
            yield rf"^from\s+{top}\b", f"from {OWNER}.{MOVED[top]}"
    else:
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


@contextmanager
def _dated(epoch: int) -> Iterator[None]:
    before = os.environ.get(EPOCH)
    os.environ[EPOCH] = str(epoch)
    try:
        yield
    finally:
        if before is None:
            del os.environ[EPOCH]
        else:
            os.environ[EPOCH] = before
