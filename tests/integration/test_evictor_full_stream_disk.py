"""A full disk under the streams: what was acknowledged stays, the next fact waits in the outbox, and is stored once."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fixture_types import Until

from services.evictor.ports import EvictionLedger
from services.evictor.record.outbox import Outbox
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded import server as nats_server
from shared.adapters.nats.embedded.server import NatsServer, find_binary
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.core.evictions.intents import Outgoing
from shared.errors import NotStored
from shared.ports import DurableMessage

SMALL, LARGE = "8m", "64m"
MANY = 1000
SUBJECT = "sublet.cluster.v1.event.eviction.created.default.node-a"
BODY = os.urandom(20_000)  # cannot be compressed

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
        reason="needs root and a mount namespace",
    ),
]


class Disk:
    """A small tmpfs in a mount namespace of its own, which lives as long as its keeper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        script = f"mount -t tmpfs -o size={SMALL} tmpfs {folder} && echo ready && exec sleep 600"
        self._keeper = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE)
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"ready\n"

    @property
    def inside(self) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt", "--"]

    def enlarge(self) -> None:
        subprocess.run([*self.inside, "mount", "-o", f"remount,size={LARGE}", self.folder], check=True)

    def remove(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "nats/jetstream")
    yield disk
    disk.remove()


@pytest.fixture
def server(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NatsServer]:
    """A NATS server whose streams lie on that disk."""
    wrapper = tmp_path / "nats-server"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(disk.inside)} {find_binary()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(nats_server, "find_binary", lambda: wrapper)
    server = NatsServer(store_dir=tmp_path / "nats")
    server.start()
    yield server
    server.stop()


class OneFact:
    """A ledger with one message that waits."""

    def __init__(self) -> None:
        self.sequence = 0

    def waiting(self, _limit: int) -> list[Outgoing]:
        return [] if self.sequence else [Outgoing("last", SUBJECT, BODY)]

    def waiting_count(self) -> int:
        return len(self.waiting(1))

    def acknowledged(self, _limit: int) -> list[Outgoing]:
        return []

    def published(self, _msg_id: str, *, sequence: int, now_s: float) -> None:
        self.sequence = sequence


async def fill(bus: NatsBus) -> int:
    """How many facts the stream takes before the disk is full."""
    for number in range(MANY):
        try:
            await bus.publish_durable(DurableMessage(SUBJECT, BODY, msg_id=f"{number}"), budget_s=1.0)
        except NotStored:
            return number
    return MANY


async def test_a_full_disk_keeps_what_it_has_and_the_next_fact_waits_for_room(
    disk: Disk, server: NatsServer, until: Until
) -> None:
    clock = SystemClock()
    bus = await connect(server.url, name="evictor/node-a", connect_timeout_s=10, clock=clock)
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    acknowledged = await fill(bus)
    assert 10 < acknowledged < MANY
    ledger = OneFact()
    outbox = Outbox(cast("EvictionLedger", ledger), bus, clock)
    sending = asyncio.create_task(outbox.run())
    outbox.wake()
    await asyncio.sleep(0)
    disk.enlarge()
    server.kill()
    await until(lambda: not bus.connected)
    assert ledger.sequence == 0
    server.start()
    await until(lambda: ledger.sequence)
    sending.cancel()
    ids = [message.headers["Nats-Msg-Id"] for message in await bus.replay(EVENTS_STREAM, ">")]
    assert [name for name in ids if name != f"{acknowledged}"] == [*map(str, range(acknowledged)), "last"]
    assert len(ids) == len(set(ids))
    await bus.drain()
