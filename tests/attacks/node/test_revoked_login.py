"""A stolen login of a node is revoked: the thief is out with its next connection, which a restart of the hub brings."""

import asyncio
import time
from pathlib import Path

import pytest
from bus_rights_rig import PASSWORD, Hub, Leaf, at_the_hub, reaches, running, started_hub
from two_nodes import Until

from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS, state_subject
from shared.contracts.readiness import Readiness
from shared.errors import NotStored
from shared.ports import DurableMessage, Received


def _leaf(folder: Path, hub: Hub, node: str) -> Leaf:
    made = Leaf(folder / f"leaf-{node}", hub, node)
    made.log_in_with(hub.reviews.issue(node))
    return made


async def _hub_with_streams(tmp_path: Path) -> Hub:
    hub = started_hub(tmp_path / "hub")
    central = await hub.client(f"central:{PASSWORD}", "central/c")
    for spec in STREAMS:
        await central.ensure_stream(spec)
    await central.ensure_bucket(CONFIG_BUCKET)
    await central.put(CONFIG_BUCKET, "global", b"{}")
    return hub


@pytest.mark.timeout(120)
async def test_a_revoked_login_is_out_within_seconds_and_every_other_node_is_back(
    tmp_path: Path, until: Until, request: pytest.FixtureRequest
) -> None:
    hub = await _hub_with_streams(tmp_path)
    stolen, other = _leaf(tmp_path, hub, "a"), _leaf(tmp_path, hub, "b")
    heard: list[Received] = []
    async with hub.central_answers():
        with running(stolen.server, other.server):
            thief, agent = await at_the_hub(stolen), await at_the_hub(other)
            await thief.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1"))
            # The operator deletes the agent's pod: from then on the API server calls its token invalid.
            hub.reviews.tokens.clear()
            hub.reviews.issue("b")
            await thief.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-2", b"2", msg_id="2"))
            began_s = time.monotonic()
            hub.server.kill()
            hub.server.start()
            await reaches(agent, "b")
            took_s = time.monotonic() - began_s
            request.node.user_properties.append(("until every other node is back", round(took_s, 2)))
            print(f"\nthe hub restarted, until the other node is back: {took_s:.2f} s")
            watcher = await hub.client(f"central:{PASSWORD}", "central/w")
            await watcher.subscribe(state_subject(Readiness, "*"), heard.append)
            for word in (b"x", b"y"):
                await thief.publish(state_subject(Readiness, "a"), word)
                await agent.publish(state_subject(Readiness, "b"), word)
            await until(lambda: len(heard) == 2)
            assert {message.subject for message in heard} == {state_subject(Readiness, "b")}
            with pytest.raises(NotStored):
                await thief.publish_durable(
                    DurableMessage("sublet.cluster.v1.intent.a.0a-3", b"3", msg_id="3"), budget_s=2.0
                )
            held = await watcher.replay("SUBLET_INTENTS", ">")
            assert sorted(message.data for message in held) == [b"1", b"2"]
            await asyncio.gather(thief.drain(), agent.drain())
    await hub.close()
