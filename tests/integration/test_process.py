"""A whole process: settings, bus, signals, exit codes."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from present import present

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.build import VERSION

PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from shared.adapters.process import main
    from shared.app import Plan
    from shared.contracts.readiness import ServiceHealth
    from shared.settings import Settings, section

    class DemoSettings(Settings):
        dies_after_s: float = 3600.0

    class App:
        def __init__(self, context):
            self.settings = section(DemoSettings, context.raw, "qrm")
        async def run(self):
            print("running", flush=True)
            await asyncio.sleep(self.settings.dies_after_s)
        def health(self):
            return ServiceHealth(service="qrm", ok=True)
        def state(self):
            return {"value": 1}
        def reconfigure(self, section): ...
        async def close(self):
            print("closed", flush=True)

    main([Plan("qrm", App)])
""")


class Process:
    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child

    async def line(self) -> str:
        return (await present(self.child.stdout).readline()).decode().strip()

    async def end(self) -> tuple[int, str, str]:
        out, err = await self.child.communicate()
        return present(self.child.returncode), out.decode(), err.decode()


@contextlib.asynccontextmanager
async def running(**env: str) -> AsyncIterator[Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, env={"SUBLET_NODE": "node-a", **env},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Process(child)
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_with_0_after_close(nats_server: NatsServer, number: signal.Signals) -> None:
    async with running(SUBLET_NATS_URL=nats_server.url) as process:
        assert await process.line() == "running"
        process.child.send_signal(number)
        code, out, err = await process.end()
    assert (code, out) == (0, "closed\n"), err


async def test_a_dead_task_ends_with_1_after_close(nats_server: NatsServer) -> None:
    async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_QRM__DIES_AFTER_S="0.01") as process:
        code, out, err = await process.end()
    assert (code, out) == (1, "running\nclosed\n")
    assert "service qrm ended by itself" in err


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"SUBLET_NATS_URLL": "x"}, "sublet qrm: settings: nats_urll: no such setting; did you mean 'nats_url'?\n"),
        ({"SUBLET_CONFIG": "/no/such/file"}, "no such file"),
        ({"SUBLET_NATS_URL": "http://"}, "nats_url"),
    ],
    ids=["unknown key", "no file", "no address"],
)
async def test_a_bad_setting_ends_with_2_and_one_clear_line(env: dict[str, str], words: str) -> None:
    async with running(**env) as process:
        code, out, err = await process.end()
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


async def test_a_bad_setting_of_a_service_ends_with_2(nats_server: NatsServer) -> None:
    async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_QRM__DIES_AFTER="1") as process:
        code, _, err = await process.end()
    assert code == 2
    assert "qrm.dies_after: no such setting; did you mean 'dies_after_s'?" in err
    assert "Traceback" not in err


async def test_no_nats_server_ends_with_3_after_a_waiting_line() -> None:
    async with running(SUBLET_NATS_URL="nats://127.0.0.1:1", SUBLET_CONNECT_TIMEOUT_S="0.5") as process:
        code, out, err = await process.end()
    assert (code, out) == (3, "")
    assert "bus.awaited" in err
    assert "sublet qrm: no NATS server at 127.0.0.1:1 within 0.5 s" in err
    assert "Traceback" not in err


async def test_a_signal_while_waiting_for_nats_ends_with_0() -> None:
    async with running(SUBLET_NATS_URL="nats://127.0.0.1:1", SUBLET_CONNECT_TIMEOUT_S="500") as process:
        while b"bus.awaited" not in await present(process.child.stderr).readline():
            pass
        process.child.send_signal(signal.SIGTERM)
        code, _, err = await process.end()
    assert code == 0, err


async def test_a_process_with_a_port_answers_over_http_and_on_the_bus(nats_server: NatsServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_HTTP_PORT=str(port)) as process:
        assert await process.line() == "running"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert b"200 OK" in await reader.readline()
        writer.close()
        bus = await connect(nats_server.url, name="test/a", connect_timeout_s=5, clock=SystemClock())
        answer = json.loads(await bus.request("sublet.node.v1.ask.node-a.qrm"))
        assert answer.pop("process")["version"] == VERSION
        assert answer == {"value": 1}
        await bus.drain()


async def test_a_taken_port_ends_with_3(nats_server: NatsServer) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_HTTP_PORT=port) as process:
            code, out, err = await process.end()
    assert (code, out) == (3, "")
    assert f"http_port {port}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("substrate", ["host", "sim"])
async def test_a_process_of_a_real_machine_alone_asks_to_go_before_others(
    nats_server: NatsServer, substrate: str
) -> None:
    async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_SUBSTRATE=substrate) as process:
        assert await process.line() == "running"
        process.child.send_signal(signal.SIGTERM)
        code, _, err = await process.end()
    assert code == 0
    assert ("scheduling.given" in err) == ("memory.kept" in err) == (substrate == "host")


def oom_score(pid: int) -> str:
    return Path(f"/proc/{pid}/oom_score_adj").read_text()


async def test_a_process_that_locks_no_memory_is_killed_no_later_than_others(nats_server: NatsServer) -> None:
    async with running(SUBLET_NATS_URL=nats_server.url, SUBLET_LOCK_MEMORY="false") as process:
        assert await process.line() == "running"
        assert oom_score(process.child.pid) == oom_score(os.getpid())
        process.child.send_signal(signal.SIGTERM)
        assert (await process.end())[0] == 0
