"""Ports and addresses of `sublet up`, before anything starts."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import Refused, Unavailable
from shared.settings import CommonSettings
from sublet.host.listening import LAST_PORT, ListenPort, answers, require_free, require_ports, require_server_url
from sublet.host.session import Session


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(("nats_port", "http_port"), [(0, 0), (LAST_PORT, 0), (4222, 9300), (1, LAST_PORT - 6)])
def test_ports_that_a_machine_has_are_taken(nats_port: int, http_port: int) -> None:
    require_ports(nats_port, http_port)


@pytest.mark.parametrize(("nats_port", "http_port"), [(-1, 0), (LAST_PORT + 1, 0), (0, -1), (0, LAST_PORT - 5)])
def test_others_are_refused_with_their_bounds(nats_port: int, http_port: int) -> None:
    with pytest.raises(Refused, match="want 1 to"):
        require_ports(nats_port, http_port)


def test_a_password_in_what_is_no_address_is_not_repeated() -> None:
    with pytest.raises(Refused, match="no address of a NATS server") as caught:
        require_server_url("ftp://me:word@h")
    assert "me:word" not in str(caught.value)


async def test_a_port_on_which_something_listens_is_named(taken: int) -> None:
    await require_free([ListenPort("--nats-port 0", "127.0.0.1", 0)])
    with pytest.raises(Unavailable, match=f"--nats-port {taken}: port {taken} of 127.0.0.1 .*listens there already"):
        await require_free([ListenPort(f"--nats-port {taken}", "127.0.0.1", taken)], patience_s=0)


async def test_a_port_that_is_let_go_meanwhile_is_waited_for() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    asyncio.get_running_loop().call_soon(server.close)
    await require_free([ListenPort(f"--nats-port {port}", "127.0.0.1", port)], patience_s=60)


async def test_up_refuses_a_port_that_is_taken_and_leaves_nothing(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(require_free, "__defaults__", (0.0,))
    common = CommonSettings(state_dir=tmp_path / "state", substrate="sim", host_root=tmp_path / "root")
    with pytest.raises(Unavailable, match="listens there already"):
        await Session(common, nats_port=taken, say=lambda _line: None).start()
    with pytest.raises(Unavailable, match=f"--http-port {taken - 2}: port {taken} "):
        await Session(common, nats_port=0, http_port=taken - 2, say=lambda _line: None).start()
    assert not (tmp_path / "state").exists()


async def test_whether_a_server_answers_is_asked_at_each_of_its_addresses(taken: int) -> None:
    assert await answers(f"nats://127.0.0.1:1,nats://127.0.0.1:{taken}")
    assert not await answers("nats://127.0.0.1:1")
