"""A page of the documentation that is tried as printed, in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = (
    "tests/conftest.py",
    "tests/kube_cluster.py",
    "tests/kube_agents.py",
    "tests/fixture_types.py",
    "tests/present.py",
    "tests/slow_machines.py",
)
"""Settings of all tests, without which a law fails in the copy where the machine is busy; and what tests import."""
NOT_COPIED = shutil.ignore_patterns("*.egg-info", "build", "*.pyc.*", f"*-pytest-{pytest.__version__}.pyc")
"""Compiled modules are copied, or each copy compiles all of them anew; not those that another process is writing, nor
those of pytest, which name the files of the original."""


def copy_of_tree(goal: Path, names: Sequence[str]) -> Path:
    """Copy these files and folders of the project; what is installed goes to a folder of the copy."""
    for name in (*names, *CONFTEST):
        source, target = ROOT / name, goal / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=NOT_COPIED)
        else:
            shutil.copy(source, target)
    (goal / ".venv").symlink_to(sys.prefix)
    return goal


def run(tree: Path, command: Sequence[str], text: str | None = None) -> str:
    """A command's output in the copy; it must succeed."""
    paths = f"{tree}{os.pathsep}{tree / 'installed'}"
    env = os.environ | {"PYTHONPATH": paths, "PIP_TARGET": str(tree / "installed")}
    done = subprocess.run(command, cwd=tree, env=env, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
