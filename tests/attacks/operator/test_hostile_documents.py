"""Documents that a person was given and applies: none takes the machine's memory or time, or starts anything."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{c}: &{c} [{','.join([f'*{b}'] * 9)}]\n" for b, c in zip("abcdefghi", "bcdefghij", strict=True)
)
HOSTILE = {
    "laughs": LAUGHS.encode(),
    "around itself": b"qrm: &q {mode: *q}\n",
    "merges itself": b"qrm: &q {<<: *q}\n",
    "deep": b"qrm: " + b"[" * 200_000,
    "a gibibyte": None,
    "an object": b"qrm: !!python/object/apply:os.system [touch done]\n",
    "a module": b"qrm: !!python/module:antigravity\n",
    "a long number": b"qrm: {lease_s: " + b"9" * 100_000 + b"}\n",
    "a long name": b"qrm: {" + b"x" * 200_000 + b": 1}\n",
    "many keys": b"qrm: {" + b",".join(b"k%d: 1" % n for n in range(20_000)) + b"}\n",
    "a terminal's words": b'qrm: {mode: "\\e]0;owned\\a\\e[2J"}\n',
    "a zero": b"qrm: {mode: \x00}\n",
    "no text": bytes(range(256)) * 16,
}
MEMORY_BYTES = 1 << 30
LIMIT_S = 120


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@pytest.mark.parametrize("command", ["validate", "apply", "slo"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_in_few_words(tmp_path: Path, name: str, command: str) -> None:
    path, content = tmp_path / "c.yaml", HOSTILE[name]
    if content is None:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "sublet", "config", command, "-f", "c.yaml"], cwd=tmp_path, preexec_fn=bounded,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "SUBLET_STATE_DIR": str(tmp_path / "state")},
        capture_output=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) < 2200
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.yaml"]
