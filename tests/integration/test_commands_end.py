"""A command that goes on and on ends by SIGTERM, also as a shell's background job, which ignores Ctrl-C."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fixture_types import Until
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import STREAMS

PATIENCE_S = patience_s(60.0)
SOCKETS_OF_A_LOOP = 2
"""The two ends of the pair by which signals wake an event loop."""


WITHOUT_CTRL_C = 'trap "" INT; exec "$0" "$@"'


def sockets(pid: int) -> int:
    links = []
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            links.append(str(path.readlink()))
        except OSError:
            continue
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["events", "--follow"], id="events"),
        pytest.param(["bridge", "--to", "http://127.0.0.1:9/nobody"], id="bridge"),
    ],
)
async def test_a_background_job_ends_by_term_with_143(
    server: NatsServer, until: Until, tmp_path: Path, words: list[str]
) -> None:
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=10, clock=SystemClock())
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.drain()
    env = {**os.environ, "SUBLET_NATS_URL": server.url, "SUBLET_STATE_DIR": str(tmp_path / "state")}
    process = subprocess.Popen(
        ["sh", "-c", WITHOUT_CTRL_C, sys.executable, "-m", "sublet", *words], env=env, stdout=subprocess.DEVNULL
    )
    try:
        await until(lambda: sockets(process.pid) > SOCKETS_OF_A_LOOP)
        process.send_signal(signal.SIGINT)
        process.terminate()
        assert await asyncio.to_thread(process.wait, PATIENCE_S) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
