"""A node speaks as central: it tells itself and another one that nothing is lent of their pods, and listens to what
others are told. On the chart's hub none of it leaves its own leaf, and what central says reaches the node it is for.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.msg import Msg
from slow_machines import patience_s
from two_nodes import TwoNodes, Until

from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.profiles import ProfiledService, ServiceProfiles
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Newest, Wire

pytestmark = pytest.mark.timeout(120)
SERVICE = ProfiledService(namespace="shop", name="web", pods=("0b-1",), kept={"baseline": ("0b-1",)})


def told(wire: Wire, node: str) -> ServiceProfiles:
    return wire.stamp(ServiceProfiles, services=(SERVICE,)).model_copy(update={"node": node})


async def test_central_is_heard_by_the_node_it_speaks_to_and_a_thief_by_nobody(
    two_nodes: TwoNodes, until: Until
) -> None:
    clock = SystemClock()
    overheard: list[str] = []
    at_the_hub: list[Received] = []
    slot = await Wire(two_nodes.agent, clock, node="b", service="advisor").newest(ServiceProfiles)
    central = Wire(two_nodes.central, clock, node="hub", service="central")
    await two_nodes.central.subscribe(state_subject(ServiceProfiles, "*"), at_the_hub.append)

    async def overhear(message: Msg) -> None:
        overheard.append(message.subject)

    for subject in (state_subject(ServiceProfiles, "b"), "sublet.cluster.v1.profiles.*", "sublet.cluster.>"):
        await two_nodes.thief.subscribe(subject, cb=overhear)
    lie = Wire(MemoryBus(), clock, node="a", service="central")
    for node in ("a", "b"):
        message = told(lie, node)
        await two_nodes.thief.publish(state_subject(ServiceProfiles, node), message.encode())
    await two_nodes.thief.flush()
    heard = overheard.copy()  # what it says itself it hears, on its own leaf

    async def say() -> None:
        await central.publish(told(central, "b"))

    await _again_until(say, lambda: slot.value is not None)
    assert slot.value is not None
    assert slot.value.boot_id == central.boot_id
    await until(lambda: at_the_hub)
    assert {ServiceProfiles.decode(one.data).boot_id for one in at_the_hub} == {central.boot_id}
    assert set(overheard) <= set(heard) | {state_subject(ServiceProfiles, "a"), state_subject(ServiceProfiles, "b")}
    assert len(overheard) <= 5  # its own two, by each of its subscriptions; nothing of central's


async def _again_until(say: Callable[[], Awaitable[None]], heard: Callable[[], bool]) -> None:
    """The leaf's interest takes a moment to reach the hub; state is said again and again."""
    async with asyncio.timeout(patience_s(20)):
        while not heard():
            await say()
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        pytest.param("b", {"node": "a"}, id="another node's name"),
        pytest.param("a", {}, id="another node's subject"),
        pytest.param("b", {"services": [{"namespace": "../x", "name": "web"}]}, id="no name"),
        pytest.param("b", {"services": [{"namespace": "a", "name": "b", "pods": ["0b"] * 2000}]}, id="too many pods"),
        pytest.param("b", {"services": [{"namespace": "a", "name": "b"}] * 300}, id="too many services"),
        pytest.param("b", {"services": [{"namespace": "a", "name": "b", "targets": {"cpi": 1e9}}]}, id="no target"),
        pytest.param("b", {"services": [{"namespace": "a", "name": "b", "kept": {"A B": []}}]}, id="no word"),
        pytest.param("b", {"services": "all"}, id="no list"),
    ],
)
def test_what_is_no_word_of_central_changes_nothing(subject: str, changes: dict[str, Any]) -> None:
    clock = SystemClock()
    central, slot = Wire(MemoryBus(), clock, node="hub", service="central"), Newest(
        ServiceProfiles, clock, service="advisor", node="b")  # fmt: skip
    good = told(central, "b")
    slot.offer(Received(state_subject(ServiceProfiles, "b"), good.encode()))
    broken = json.dumps(told(central, "b").model_dump(mode="json") | changes).encode()
    slot.offer(Received(state_subject(ServiceProfiles, subject), broken))
    assert slot.value == good
