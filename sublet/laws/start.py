"""Creates an extension in a wheel of its own: the template, and the project around it."""

import ast
import inspect
import re
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class StartedExtension:
    """A project of two files around an extension of this name, for a folder of its own in `place`."""

    kind: ExtensionKind[Any]
    name: str
    place: Path

    def files(self) -> tuple[Path, Path]:
        """The module and the project file, neither of which is there yet.

        Raises:
            Refused: the name cannot be one, or the folder is there.
        """
        noun, dashed = self.kind.registry.noun, self.name.replace("_", "-")
        if not NAME.fullmatch(self.name):
            raise Refused(
                f"{noun} {self.name!r}: want up to 40 of a-z, 0-9 and _, a letter first, such as 'halfway'",
                reason="name",
            )
        # A file of ours comes before a wheel of the same name: it would never be asked.
        if self.name in self.kind.registry.known():
            raise Refused(f"{noun} {self.name!r}: Sublet has one of this name itself; choose another", reason="name")
        folder = self.place / f"sublet-{noun}-{dashed}"
        if folder.exists():
            raise Refused(f"folder {folder}: file exists; name another with --in", reason="folder")
        return folder / f"sublet_{noun}_{self.name}.py", folder / "pyproject.toml"

    def write(self) -> tuple[Path, Path]:
        """Write the project; the folder and the module.

        Raises:
            Refused: as `files`, or the folder cannot be made.
        """
        module, project = self.files()
        registry, dashed = self.kind.registry, self.name.replace("_", "-")
        text = PROJECT.format(
            noun=registry.noun, dashed=dashed, name=self.name, group=registry.group, module=module.stem,
            attribute=registry.attribute,
        )  # fmt: skip
        folder = module.parent
        try:
            folder.mkdir()
            module.write_text(_module(self.kind, self.name, dashed), encoding="utf-8")
            project.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refused(f"folder {folder}: {os_reason(error)}; name another with --in", reason="folder") from error
        return folder, module


def _module(kind: ExtensionKind[Any], name: str, dashed: str) -> str:
    """The template under this name; its head tells how to work in the tree, which this is not."""
    text = inspect.getsource(kind.template)
    head = ast.parse(text).body[0]
    body = "".join(text.splitlines(keepends=True)[head.end_lineno :])
    own, called = getattr(kind.template, kind.registry.attribute), kind.called.format(name=name, dashed=dashed)
    return f'"""{kind.about.format(name=name)}"""\n' + body.replace(f'name="{own.name}"', f'name="{called}"')
