"""A node in other hands, where heartbeats are divided: it says what it likes of itself, and nothing of who hears whom.

It speaks into a shard of its choice, for another node in any shard, and as a central that has heard of nodes, or that
claims to hear a shard that nobody hears then.
"""

import contextlib
from datetime import UTC, datetime

import nats.errors
import pytest
from bus_rights_rig import divided
from nats.aio.msg import Msg
from two_nodes import TwoNodes, Until

from shared.contracts.bus.subjects import shard_of, shard_subject, state_subject
from shared.contracts.cluster.heard import Ear, HeardNodes, HeardRound
from shared.contracts.readiness import Readiness
from shared.ports import Received

SHARDS = 4
BOOT = "f" * 16
AT = datetime(2026, 1, 1, tzinfo=UTC)


def heartbeat(node: str, seq: int = 1) -> bytes:
    return Readiness(node=node, boot_id=BOOT, seq=seq, sent_at=AT, ready=True).encode()


def heard_round(name: str) -> bytes:
    """A central that hears all shards, and has heard of node b."""
    words = HeardNodes(ready=True, nodes=("b",), boot_ids=(BOOT,), seqs=(9,), sent_ms=(0,), age_ms=(0,))
    ears = tuple(Ear(shard=shard, listening_s=3600.0) for shard in range(SHARDS))
    return HeardRound(
        node=name, boot_id=BOOT, seq=1, sent_at=AT, round=1, probe_age_s=0.0, ears=ears, nodes=(words,)
    ).encode()  # fmt: skip


@pytest.mark.parametrize("two_nodes", [divided(SHARDS)], indirect=True)
async def test_a_stolen_node_chooses_no_shard_and_speaks_for_no_central(two_nodes: TwoNodes, until: Until) -> None:
    at_central: list[Received] = []
    for subject in ("sublet.cluster.v1.ready.>", "sublet.cluster.v1.heard.>"):
        await two_nodes.central.subscribe(subject, at_central.append)
    overheard: list[bytes] = []

    async def note(message: Msg) -> None:
        overheard.append(message.data)

    for subject in ("sublet.cluster.v1.heard.>", "sublet.cluster.v1.ready.>", "sublet.cluster.v1.ready.*.b"):
        await two_nodes.thief.subscribe(subject, cb=note)
    await two_nodes.thief.flush()

    ways = {shard_subject(shard).replace("*", node): heartbeat(node) for shard in range(SHARDS) for node in "ab"}
    ways |= {state_subject(HeardRound, name): heard_round(name) for name in ("a", "central-a", "hub")}
    ways[state_subject(Readiness, "b")] = heartbeat("b")
    for subject, payload in ways.items():
        await two_nodes.thief.publish(subject, payload)
        with contextlib.suppress(nats.errors.Error):  # and by way of an answer, which goes wherever the asker says
            await two_nodes.thief.publish(state_subject(Readiness, "a"), b"not one", reply=subject)
            await two_nodes.thief.request(subject, payload, timeout=0.05)
    await two_nodes.central.publish(state_subject(HeardRound, "central-a"), b"central's own")
    await two_nodes.agent.publish(state_subject(Readiness, "b"), heartbeat("b", 2))
    await two_nodes.thief.publish(state_subject(Readiness, "a"), heartbeat("a", 2))
    # Its own word comes last, in the shard that the hub has chosen for it.
    await until(lambda: {heartbeat("a", 2), heartbeat("b", 2)} <= {one.data for one in at_central})

    of_a = {one.subject for one in at_central if one.subject.endswith(".a")}
    of_b = [one for one in at_central if one.subject.endswith(".b")]
    assert len(of_a) == 1, "in one shard, whatever it asked for"
    assert shard_of(of_a.pop()) is not None
    assert [one.data for one in of_b] == [heartbeat("b", 2)], "of b there is what b has said"
    assert [one.data for one in at_central if ".heard." in one.subject] == [b"central's own"]
    # What it says itself its own leaf lets it hear.
    assert not {b"central's own", heartbeat("b", 2)} & set(overheard)
