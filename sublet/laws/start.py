"""Creates an extension in a wheel of its own: the template, and the project around it."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from shared.errors import Refused
from shared.text_file import os_reason
from sublet.laws.extension import ExtensionKind

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
PROJECT = """\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "sublet-{noun}-{dashed}"
version = "0.1.0"
description = "A {noun} for Sublet."
requires-python = ">=3.11"
dependencies = ["sublet"]

[project.entry-points."{group}"]
{name} = "{module}:{attribute}"

[tool.setuptools]
py-modules = ["{module}"]
"""


def start_extension(kind: ExtensionKind[Any], name: str, place: Path) -> tuple[Path, Path]:
    """Write a project of two files into a new folder; the folder and the module.

    Raises:
        Refused: the name cannot be one, or the folder is there or cannot be made.
    """
    noun, dashed = kind.registry.noun, name.replace("_", "-")
    if not NAME.fullmatch(name):
        raise Refused(
            f"{noun} {name!r}: want up to 40 of a-z, 0-9 and _, a letter first, such as 'halfway'", reason="name"
        )
    # A file of ours comes before a wheel of the same name: it would never be asked.
    if name in kind.registry.known():
        raise Refused(f"{noun} {name!r}: Sublet has one of this name itself; choose another", reason="name")
    folder, module = place / f"sublet-{noun}-{dashed}", f"sublet_{noun}_{name}"
    project = PROJECT.format(
        noun=noun, dashed=dashed, name=name, group=kind.registry.group, module=module,
        attribute=kind.registry.attribute,
    )  # fmt: skip
    file = folder / f"{module}.py"
    try:
        folder.mkdir()
        file.write_text(_module(kind, name, dashed), encoding="utf-8")
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    except OSError as error:
        raise Refused(f"folder {folder}: {os_reason(error)}; name another with --in", reason="folder") from error
    return folder, file


def _module(kind: ExtensionKind[Any], name: str, dashed: str) -> str:
    """The template under this name; its head tells how to work in the tree, which this is not."""
    text = inspect.getsource(kind.template)
    head = ast.parse(text).body[0]
    body = "".join(text.splitlines(keepends=True)[head.end_lineno :])
    own, called = getattr(kind.template, kind.registry.attribute), kind.called.format(name=name, dashed=dashed)
    return f'"""{kind.about.format(name=name)}"""\n' + body.replace(f'name="{own.name}"', f'name="{called}"')
