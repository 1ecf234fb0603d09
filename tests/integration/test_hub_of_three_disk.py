"""One of three servers has a full disk: facts go on to be acknowledged by the others, and it catches up with room."""

import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import test_evictor_full_stream_disk
from hub_of_three import UP_S, hub_of_three
from test_evictor_full_stream_disk import Disk
from test_evictor_full_stream_disk import pytestmark as needs_a_disk
from test_hub_of_three import told
from until_met import until_found

from shared.adapters.nats.bus import NatsBus
from shared.adapters.nats.embedded.server import find_binary
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import EVENTS_STREAM
from shared.errors import Unavailable
from shared.ports import DurableMessage

FULL, MANY = "hub-1", 600
"""Facts of 20 kB: three times what is left of its disk."""
SIZE, LEFT = "700m", 4 << 20
"""A server takes no stream for which its whole disk is too small; so it is filled once they are there."""
SUBJECT = "sublet.cluster.v1.event.eviction.created.default.node-a"
BODY = os.urandom(20_000)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), *needs_a_disk]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(test_evictor_full_stream_disk, "SMALL", SIZE)
    disk = Disk(tmp_path / FULL / "store")
    yield disk
    disk.remove()


async def read_back(bus: NatsBus) -> list[str]:
    """The ids of all facts, as a stream of the hub holds them."""
    return [one.headers.get(MSG_ID, "") for one in await bus.replay(EVENTS_STREAM, SUBJECT)]


def all_there(ids: list[str]) -> bool:
    """Whether each fact is there once, in order."""
    return ids == [str(number) for number in range(MANY)]


async def test_a_full_disk_of_one_server_holds_up_nobody(
    disk: Disk, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = tmp_path / "on-a-small-disk"
    program.write_text(f'#!/bin/sh\nexec {" ".join(disk.inside)} {find_binary()} "$@"\n')
    program.chmod(0o755)
    async with hub_of_three(tmp_path, {FULL: program}) as hub:
        ballast = disk.folder / "ballast"
        free = f"$(($(df --output=avail -B1 {disk.folder} | tail -1) - {LEFT}))"
        subprocess.run([*disk.inside, "sh", "-c", f"head -c {free} /dev/zero > {ballast}"], check=True)
        bus = await hub.client("hub-0", "evictor/node-a")
        began_s, longest_s = time.monotonic(), 0.0
        for number in range(MANY):
            sent_s = time.monotonic()
            await bus.publish_durable(DurableMessage(SUBJECT, BODY, msg_id=f"{number}"), budget_s=UP_S)
            longest_s = max(longest_s, time.monotonic() - sent_s)
        told(request, f"{MANY} facts while the disk of {FULL} is full, {longest_s:.2f} s at most for one", began_s)
        began_s = time.monotonic()
        # A reader asks the server that leads: while that is the one without room, nobody answers, and it asks again.
        await until_found(partial(read_back, bus), all_there, UP_S, not_yet=(Unavailable,))
        told(request, f"all {MANY} read back from the others", began_s)
        subprocess.run([*disk.inside, "rm", ballast], check=True)
        hub.servers[FULL].kill()
        hub.servers[FULL].start()
        back = await hub.client(FULL, "evictor/back")
        await until_found(partial(read_back, back), all_there, UP_S, not_yet=(Unavailable,))
        await bus.publish_durable(DurableMessage(SUBJECT, BODY, msg_id="last"), budget_s=UP_S)
