"""Files that somebody takes for a plugin or a policy: whatever lies in them, there are few words and a known code."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sublet.exit_codes import REFUSED

HOSTILE = {
    "a gibibyte": None,
    "deep": b"x = " + b"(" * 200_000,
    "a long line": b"x = '" + b"x" * 900_000,
    "no text": bytes(range(256)) * 16,
    "a zero": b"x = '\x00'\n",
    "ends itself": b"import os\nraise SystemExit(0)\n",
    "is interrupted": b"raise KeyboardInterrupt\n",
    "around itself": b"def f(): return f()\nf()\n",
    "a terminal's words": b'raise RuntimeError("\\x1b]0;owned\\x07\\x1b[2J")\n',
    "many words": b'raise RuntimeError("x" * 10_000_000)\n',
    "a name alone": b"PLUGIN = POLICY = None\n",
}
INTERRUPTED_TOO = {"is interrupted": 130}
MEMORY_BYTES = 1 << 30
LIMIT_S = 120


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@pytest.mark.parametrize("noun", ["plugin", "policy"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_few_words(tmp_path: Path, name: str, noun: str) -> None:
    path, content = tmp_path / "own.py", HOSTILE[name]
    if content is None:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "sublet", noun, "test", "own.py"], cwd=tmp_path, preexec_fn=bounded,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "SUBLET_STATE_DIR": str(tmp_path / "state")},
        capture_output=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == INTERRUPTED_TOO.get(name, REFUSED), said[:2000]
    assert "Traceback" not in said
    assert len(said) < 6000
    assert "\x1b" not in said
    assert {file.name for file in tmp_path.iterdir()} == {"own.py"}
