"""Wheel and source distribution, by the project's own build backend."""

import sys
from pathlib import Path

from packaging.version import Version

from deploy.artifacts.checkout import Checkout, run

BACKEND = "import sys, wheel_backend as b; goal = sys.argv[1]; b.build_wheel(goal); b.build_sdist(goal)"
"""The name of the folder is read first: setuptools writes words of its own into `sys.argv`."""


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Build both; their files."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "deploy", "SOURCE_DATE_EPOCH": str(checkout.epoch_s)}
    run([sys.executable, "-c", BACKEND, goal.resolve()], env=env, cwd=checkout.folder)
    name = f"sublet-{Version(checkout.version)}"  # 1.0.0-rc.1 is 1.0.0rc1 in a wheel
    return [goal / f"{name}-py3-none-any.whl", goal / f"{name}.tar.gz"]
