"""A node in other hands wants all evictions to stop, or a pause to end: it hears the pauses, and can write none."""

import contextlib

import nats.errors
from two_nodes import TwoNodes, Until

from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.cluster.pauses import PAUSES_KEY, Pause, Pauses
from shared.ports import Entry

OURS = Pauses(pauses=(Pause(pool="green", reason="rebuild"),)).encode()
ITS_OWN = Pauses(pauses=(Pause(pool="*", reason="stop them all"),)).encode()
WAYS = ("$KV.sublet-config.pauses", "SUBLET.KV.sublet-config.pauses", "$KV.sublet-config.global")


async def test_a_stolen_node_neither_pauses_nor_ends_a_pause(two_nodes: TwoNodes, until: Until) -> None:
    heard: list[Entry] = []
    await two_nodes.agent.watch(CONFIG_BUCKET, heard.append, keys=(PAUSES_KEY,))
    revision = await two_nodes.central.put(CONFIG_BUCKET, PAUSES_KEY, OURS)
    await until(lambda: bool(heard) and heard[-1].value == OURS)
    for subject in WAYS:
        for value in (ITS_OWN, Pauses().encode(), b""):
            await two_nodes.thief.publish(subject, value)
            with contextlib.suppress(nats.errors.Error):
                await two_nodes.thief.request(subject, value, timeout=0.2)
    kept = await two_nodes.central.get(CONFIG_BUCKET, PAUSES_KEY)
    assert kept == Entry(PAUSES_KEY, OURS, revision)
    # A pause of central's comes after all that the thief has sent, and is what the other node hears next.
    await two_nodes.central.put(CONFIG_BUCKET, PAUSES_KEY, Pauses().encode())
    await until(lambda: heard[-1].value == Pauses().encode())
    assert [entry.value for entry in heard] == [OURS, Pauses().encode()]
