"""What a command loads: no package that it does not use, for everybody would wait for that each time it is typed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OF_SPECIAL_COMMANDS = {
    "aiohttp",
    "bcrypt",
    "cryptography",
    "jinja2",
    "kubernetes",
    "looptime",
    "opentelemetry",
    "textual",
}
OF_THE_BUS = {"nats", "prometheus_client"}
OF_WORK = {"asyncio", "pydantic", "rich", "structlog", "yaml"}
LOADED = """
import atexit, json, pathlib, sys
told = pathlib.Path(sys.argv.pop(1))
atexit.register(lambda: told.write_text(json.dumps(list(sys.modules))))
from sublet.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        pytest.param("--help", OF_SPECIAL_COMMANDS | OF_THE_BUS | OF_WORK, id="help"),
        pytest.param("--version", OF_SPECIAL_COMMANDS | OF_THE_BUS | OF_WORK, id="version"),
        pytest.param("get pods", OF_SPECIAL_COMMANDS | OF_THE_BUS, id="get"),
        pytest.param("status", OF_SPECIAL_COMMANDS, id="status"),
        pytest.param("config history", OF_SPECIAL_COMMANDS, id="history"),
        pytest.param("explain pod/x", OF_SPECIAL_COMMANDS, id="explain"),
    ],
)
def test_a_command_loads_no_package_that_it_does_not_use(tmp_path: Path, words: str, unused: set[str]) -> None:
    env = {**os.environ, "SUBLET_STATE_DIR": str(tmp_path), "SUBLET_NATS_URL": "nats://127.0.0.1:1"}
    told = tmp_path / "loaded.json"
    typed = [sys.executable, "-c", LOADED, str(told), *words.split()]
    subprocess.run(typed, env=env, cwd=ROOT, capture_output=True, check=False)
    loaded = set(json.loads(told.read_text()))
    assert "typer" in loaded
    assert unused & loaded == set()
