"""Starts a policy in a wheel of its own: the template that comes with Sublet, and what makes it a project."""

import ast
import inspect
import re
from pathlib import Path

from services.advisor.policies import template
from shared.errors import Refused

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
PROJECT = """\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "sublet-policy-{dashed}"
version = "0.1.0"
description = "A sizing policy for Sublet."
requires-python = ">=3.11"
dependencies = ["sublet"]

[project.entry-points."sublet.advisor.policies"]
{name} = "sublet_policy_{name}:POLICY"

[tool.setuptools]
py-modules = ["sublet_policy_{name}"]
"""
HEAD = '"""The policy `{name}`: the tenants need what they used most lately, with a margin."""\n'


def start_policy(name: str, place: Path) -> tuple[Path, Path]:
    """Write a project of two files into a new folder; the folder and the module.

    Raises:
        Refused: the name cannot be one, or the folder is there or cannot be made.
    """
    if not NAME.fullmatch(name):
        raise Refused(
            f"policy {name!r}: want up to 40 of a-z, 0-9 and _, a letter first, such as 'halfway'", reason="name"
        )
    folder = place / f"sublet-policy-{name.replace('_', '-')}"
    module = folder / f"sublet_policy_{name}.py"
    try:
        folder.mkdir()
        module.write_text(_module(name), encoding="utf-8")
        (folder / "pyproject.toml").write_text(PROJECT.format(name=name, dashed=name.replace("_", "-")))
    except OSError as error:
        raise Refused(f"folder {folder}: {error.strerror}; name another with --in", reason="folder") from error
    return folder, module


def _module(name: str) -> str:
    """The template under this name; its head tells how to work in the tree, which this is not."""
    text = inspect.getsource(template)
    head = ast.parse(text).body[0]
    body = "".join(text.splitlines(keepends=True)[head.end_lineno :])
    return HEAD.format(name=name) + body.replace(f'name="{template.POLICY.name}"', f'name="{name}"')
