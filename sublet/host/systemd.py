"""Tells systemd that Sublet is up, alive or ending, where systemd started it with `Type=notify`.

The protocol is a datagram of `NAME=value` lines to the socket that the environment names; it is stable, and programs
are asked to speak it themselves (docs/facts/systemd.md#readiness-and-watchdog).
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass

SOCKET, WATCHDOG_MICROS, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
LONGEST_MICROS = 86_400_000_000
"""A day: a period that is longer, or no number, is none."""


@dataclass(frozen=True, slots=True)
class Systemd:
    """What systemd wants to hear from this process; where it did not start it, nothing is sent."""

    address: str = ""
    """Its socket: a path, or an abstract name behind `@`."""
    watchdog_s: float | None = None
    """Silence of so many seconds is taken for a hang."""

    def ready(self, status: str) -> None:
        """Say that the start is over; `systemctl status` shows the text."""
        self._send("READY=1", f"STATUS={' '.join(status.split())}")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._send("STOPPING=1")

    async def keep_alive(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Say that this event loop turns, twice in each period; ends at once where nobody wants to hear it."""
        while self.watchdog_s is not None:
            self._send("WATCHDOG=1")
            await sleep(self.watchdog_s / 2)

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        # Whatever is wrong with the socket: Sublet works without systemd.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd:
            to_systemd.sendto("\n".join(lines).encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, name)


def systemd_of(environment: MutableMapping[str, str]) -> Systemd:
    """Who started this process. Takes the variables away: to services and pods they would be somebody else's."""
    address = environment.pop(SOCKET, "")
    micros, pid = environment.pop(WATCHDOG_MICROS, ""), environment.pop(WATCHDOG_PID, "")
    if not address.startswith(("/", "@")):
        return Systemd()
    wanted = micros.isascii() and micros.isdecimal() and len(micros) < 20 and pid in ("", str(os.getpid()))
    period = int(micros) if wanted else 0
    return Systemd(address, period / 1e6 if 0 < period <= LONGEST_MICROS else None)
