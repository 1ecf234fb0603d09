"""Environments in which nothing but the wheel and what it asks for is installed."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slow_machines import patience_s

ROOT = Path(__file__).parents[2]
STEP_TIMEOUT_S = patience_s(200)
FOREIGN = "raise AssertionError('a package of the working folder is imported')\n"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a working folder of somebody who has packages of the tree's names."""

    folder: Path
    working: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def sublet(self, *words: str, timeout_s: float = STEP_TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        """Run the command as it was installed."""
        return subprocess.run(
            [str(self.folder / "bin/sublet"), *words], cwd=self.working, env=self.env, text=True,
            capture_output=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def python(self, *words: str) -> str:
        """Output of this environment's interpreter, which sees no checkout."""
        done = subprocess.run(
            [str(self.folder / "bin/python"), *words], cwd=self.folder, env=self.env, text=True,
            capture_output=True, check=False, timeout=STEP_TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build_wheel(goal: Path, project: Path = ROOT) -> Path:
    """Build a wheel as `pip install .` does; its file."""
    words = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(goal), str(project)]
    subprocess.run([sys.executable, *words], check=True, timeout=STEP_TIMEOUT_S)
    (file,) = goal.glob("*.whl")
    return file


def make_environment(folder: Path, wheel: Path, *requirements: str) -> Environment:
    """Install pinned requirements with their hashes, then the wheel; what it asks for must be there already."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=STEP_TIMEOUT_S)
    working = folder / "working"
    for name in ("shared", "services"):
        (working / name).mkdir(parents=True)
        (working / name / "__init__.py").write_text(FOREIGN)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SUBLET_", "PYTHON"))}
    home = folder / "home"
    home.mkdir()
    made = Environment(folder / "venv", working, {**kept, "HOME": str(home), "SUBLET_STATE_DIR": str(folder / "state")})
    files = [word for name in requirements for word in ("-r", str(ROOT / f"requirements/{name}.txt"))]
    made.python(*PIP, "install", "--require-hashes", *files)
    made.python(*PIP, "install", "--no-deps", "--no-index", str(wheel))
    return made
