"""A node tells its CPUs while somebody asks for them, and at rest says nothing."""

import asyncio

from fixture_types import Virtual
from reporter_node import Node, player

from services.reporter.app import ReporterApp
from services.reporter.core.cluster.cpus import cpu_fields, shorter
from services.reporter.ports import ReporterPorts
from services.reporter.settings import ReporterSettings
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.cpus import CPUS_PERIOD_S, CpuMap, CpuWatch
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, CpuUsage, NodeReading, NodeSample, PodReading
from shared.core.cpus.topology import Cpu, Topology
from shared.errors import Unavailable
from shared.wire import Wire

TOPOLOGY = Topology.of([Cpu(0, 0, 0, 0), Cpu(1, 0, 0, 0), Cpu(2, 1, 1, 2)])


def sample(node: Node) -> NodeSample:
    used = ContainerReading(name="c", cpu_usage_cores=1.5)
    reading = NodeReading(online_cpus="0-2", cpus=CpuUsage(cpus="0,2", busy_percent=(40, 0)))
    pods = (PodReading(pod=Pod(uid="aa", name="p"), containers=(used, used)),)
    return node.wires["metrics"].stamp(NodeSample, window_s=2.0, node_reading=reading, pods=pods)


def allocation(node: Node) -> Allocation:
    pods = tuple(
        PodAllocation(uid=uid, namespace="d", name=f"p-{uid}", pool="share", cpus="0-1") for uid in ("bb", "aa")
    )
    pools = (PoolAllocation(pool="share", cpus="0-1"), PoolAllocation(pool="reclaim", cpus="2"))
    return node.wires["qrm"].stamp(Allocation, status="applied", pools=pools, pods=pods)


async def test_the_columns_are_those_of_topology_sample_and_allocation() -> None:
    node = Node()
    fields = cpu_fields(TOPOLOGY, sample(node), allocation(node))
    table = fields["table"]
    assert (table.ids, table.sockets, table.cores) == ((0, 1, 2), (0, 0, 1), (0, 0, 2))
    assert table.busy_percent == (40, None, 0)  # a CPU that was not measured has no figure
    assert [(pod.name, pod.cpu_millis) for pod in fields["pods"]] == [("p-aa", 3000), ("p-bb", None)]
    assert [pool.pool for pool in fields["pools"]] == ["share", "reclaim"]


def test_without_sample_and_allocation_the_topology_is_told_and_nothing_else() -> None:
    fields = cpu_fields(TOPOLOGY, None, None)
    assert (fields["table"].busy_percent, fields["pools"], fields["pods"]) == ((None,) * 3, (), ())


async def test_a_message_that_is_too_long_leaves_out_pods_and_counts_them() -> None:
    node = Node()
    fields = cpu_fields(TOPOLOGY, None, allocation(node))
    once = shorter(fields)
    assert once is not None
    assert ([pod.uid for pod in once["pods"]], once["pods_left_out"]) == (["aa"], 1)
    twice = shorter(once)
    assert twice is not None
    assert (twice["pods"], twice["pods_left_out"], shorter(twice)) == ((), 2, None)


class Watched(Node):
    """A node whose topology can be read, and who listens to it."""

    def __init__(self, *, readable: bool = True) -> None:
        super().__init__()
        self.readable, self.told = readable, list[CpuMap]()
        ports = ReporterPorts(self.writer, topology=self._topology)
        self.app = ReporterApp(self.context, ports, ReporterSettings())
        self.page = Wire(self.bus, self.clock, node="page", service="central")

    def _topology(self) -> Topology:
        if not self.readable:
            raise Unavailable("no CPU")
        return TOPOLOGY

    async def listen(self) -> None:
        await self.bus.subscribe(state_subject(CpuMap, "*"), lambda m: self.told.append(CpuMap.decode(m.data)))

    async def watch(self, watch_s: float, node: str = "node1") -> None:
        message = self.page.stamp(CpuWatch, watch_s=watch_s).model_copy(update={"node": node})
        await self.page.publish(message)


def test_cpus_are_told_each_second_for_as_long_as_was_asked(virtual: Virtual) -> None:
    async def story() -> None:
        async with Watched().running() as node:
            assert isinstance(node, Watched)
            await node.listen()
            await asyncio.sleep(30)
            assert node.told == []
            await node.watch(10 * CPUS_PERIOD_S)
            await asyncio.sleep(60)
            assert 10 <= len(node.told) <= 11
            await node.watch(3 * CPUS_PERIOD_S, node="node2")  # somebody else
            await asyncio.sleep(10)
            assert 10 <= len(node.told) <= 11
            await node.watch(3 * CPUS_PERIOD_S)
            await asyncio.sleep(10)
            assert 13 <= len(node.told) <= 15

    virtual(story())


def test_a_topology_that_cannot_be_read_ends_nothing(virtual: Virtual) -> None:
    async def story() -> None:
        async with Watched(readable=False).running() as node:
            assert isinstance(node, Watched)
            await node.listen()
            await node.watch(5.0)
            await asyncio.sleep(2)
            assert node.told == []
            node.readable = True
            await asyncio.sleep(5)
            assert node.told

    virtual(story())


def test_a_node_without_a_topology_tells_nothing(virtual: Virtual) -> None:
    told: list[object] = []

    async def story(node: Node) -> None:
        await node.bus.subscribe(state_subject(CpuMap, "*"), told.append)
        page = Wire(node.bus, node.clock, node="node1", service="central")
        await page.publish(page.stamp(CpuWatch))
        await asyncio.sleep(5)

    player(virtual)(story)
    assert told == []
