"""Tell the cluster whose each CPU is and how busy it is, for as long as somebody asks for it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from services.reporter.core.cluster.cpus import cpu_fields, shorter
from services.reporter.settings import ReporterSettings
from shared.contracts.allocation import Allocation
from shared.contracts.cluster.cpus import CPUS_PERIOD_S, MAX_CPUS_BYTES, CpuMap, CpuWatch
from shared.contracts.sample import NodeSample
from shared.core.cpus.topology import Topology
from shared.errors import SubletError
from shared.wire import Newest, Wire

ReadTopology = Callable[[], Topology]


class CpuReport:
    """Publishes CpuMap each second while a CpuWatch of central holds; at rest it waits and costs nothing."""

    def __init__(self, wire: Wire, topology: ReadTopology | None) -> None:
        """`topology` reads the machine's CPUs; None: this node cannot tell them."""
        self._wire, self._clock, self._read_topology = wire, wire.clock, topology
        self._told = 0

    def state(self) -> Mapping[str, Any]:
        """How many messages were published in this life."""
        return {"cpus": self._told}

    async def run(
        self, samples: Newest[NodeSample], allocations: Newest[Allocation], settings: Callable[[], ReporterSettings]
    ) -> None:
        """Answer until cancelled. `settings` gives those in force, for the ages up to which inputs are fresh."""
        if self._read_topology is None:
            await asyncio.Event().wait()
            return
        watches = await self._wire.newest(CpuWatch)
        while True:
            watch = await watches.next()
            while watch is not None and (watches.age_s or 0.0) < watch.watch_s:
                await self._tell(self._read_topology, samples, allocations, settings())
                await self._clock.sleep(CPUS_PERIOD_S)
                watch = watches.value

    async def _tell(
        self,
        read_topology: ReadTopology,
        samples: Newest[NodeSample],
        allocations: Newest[Allocation],
        settings: ReporterSettings,
    ) -> None:
        try:
            topology = read_topology()
        except SubletError:
            # Metrics and qrm say why these files cannot be read; the page shows that nothing comes.
            return
        # An allocation stays in force however old it is; a use does not.
        fields = cpu_fields(topology, samples.within(settings.max_sample_age_s), allocations.value)
        message = self._wire.stamp(CpuMap, **fields)
        while len(payload := message.encode()) > MAX_CPUS_BYTES and (less := shorter(fields)) is not None:
            fields = less
            message = self._wire.stamp(CpuMap, **fields)
        self._told += await self._wire.publish(message, payload=payload)
