"""Two nodes on the chart's hub: node a is in other hands, node b works as ever."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import nats
import pytest
from bus_rights_rig import PASSWORD, Hub, Leaf, running, started_hub
from two_nodes import TwoNodes, Until

from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS


def _leaf(folder: Path, hub: Hub, node: str) -> Leaf:
    made = Leaf(folder / f"leaf-{node}", hub, node)
    made.log_in_with(hub.reviews.issue(node))
    return made


@pytest.fixture
async def two_nodes(request: pytest.FixtureRequest, tmp_path: Path, until: Until) -> AsyncIterator[TwoNodes]:
    """Up, with streams, and both leaves at the hub; the parameter is what its configuration has in other words."""
    hub = started_hub(tmp_path / "hub", getattr(request, "param", None))
    central = await hub.client(f"central:{PASSWORD}", "central/c")
    for spec in STREAMS:
        await central.ensure_stream(spec)
    await central.ensure_bucket(CONFIG_BUCKET)
    await central.put(CONFIG_BUCKET, "global", b"{}")
    a, b = _leaf(tmp_path, hub, "a"), _leaf(tmp_path, hub, "b")
    async with hub.central_answers():
        with running(a.server, b.server):
            agents = [await a.agent(), await b.agent()]
            for agent in agents:
                got: list[object] = []
                watch = await agent.watch(CONFIG_BUCKET, got.append, keys=("global",))
                await until(partial(bool, got))
                await watch.stop()
            thief = await nats.connect(a.server.url, inbox_prefix="_INBOX_node.a")
            yield TwoNodes(hub, central, agents[1], thief, a.server.url)
            await thief.close()
            for agent in agents:
                await agent.drain()
    await hub.close()
