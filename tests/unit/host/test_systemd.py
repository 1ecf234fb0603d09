"""What systemd hears of `sublet up`, on a socket as it makes one."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sublet.host.systemd import Systemd, systemd_of


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        heard.setblocking(False)
        yield heard


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "path" else f"@sublet-test-{os.getpid()}"


def test_it_hears_that_the_start_is_over_and_that_the_end_begins(address: str) -> None:
    with listening(address) as heard:
        systemd = systemd_of({"NOTIFY_SOCKET": address})
        systemd.ready("up\nREADY=0")
        assert heard.recv(200) == b"READY=1\nSTATUS=up READY=0"
        systemd.stopping()
        assert heard.recv(200) == b"STOPPING=1"


async def test_it_hears_twice_in_each_period_that_the_loop_turns(address: str) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise InterruptedError

    with listening(address) as heard:
        systemd = systemd_of({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())})
        with pytest.raises(InterruptedError):
            await systemd.keep_alive(sleep)
        assert [heard.recv(200) for _ in pauses] == [b"WATCHDOG=1"] * 3
    assert pauses == [15.0] * 3


async def test_where_nobody_listens_nothing_happens(tmp_path: Path) -> None:
    for systemd in (Systemd(), systemd_of({"NOTIFY_SOCKET": str(tmp_path / "gone")})):
        systemd.ready("up")
        systemd.stopping()
        await systemd.keep_alive()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Systemd()),
        ({"WATCHDOG_USEC": "1000000"}, Systemd()),
        ({"NOTIFY_SOCKET": "vsock:2:1"}, Systemd()),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "2500000"}, Systemd("/run/n", 2.5)),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "1"}, Systemd("/run/n")),
        *(
            ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": word}, Systemd("/run/n"))
            for word in ("", "0", "-5", "5s", "1e6", "9" * 19, "9" * 5000, "²")
        ),
    ],
)
def test_what_is_no_socket_or_no_period_is_none_and_nobody_inherits_it(
    given: dict[str, str], expected: Systemd
) -> None:
    environment = {**given, "HOME": "/root"}
    assert systemd_of(environment) == expected
    assert environment == {"HOME": "/root"}
