"""What central spends on telling nodes of the services of their pods, how large that is, and what a node spends on it.

    python -m bench.cluster.service_profiles

5 000 nodes and 1 000 services of 50 pods each, of which a fifth is baseline. CPU time; the pass is central's
own, without the API server.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from uuid import UUID

from bench.rigs.report import Row, print_rows, progress
from services.advisor.core.observation.profiles import profiles_in
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.service_profiles.descriptor import DescriptorSeen, DescriptorSpec
from services.central.core.service_profiles.told import ServiceHere, services_of_nodes, told_of
from services.central.service_profiles.telling import NodeTelling
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.profiles import ServiceProfiles
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Wire
from sublet.sim.virtual_time import VirtualTimeLoop

NODES, SERVICES, PODS, TRIES = 5000, 1000, 50, 5
MINUTE_S, PASS_S = 60, 10.0

Services = list[tuple[DescriptorSeen, list[WorkloadPod]]]


def services() -> Services:
    """All services with their pods, somewhere in the cluster."""
    roll, found = random.Random(17), []
    for number in range(SERVICES):
        name = f"service-{number}"
        level = {"indicatorLevel": "UpperBound", "value": 0.6}
        spec = DescriptorSpec.model_validate({
            "targetRef": {"kind": "Deployment", "name": name}, "baselinePercent": 20,
            "systemIndicator": [{"name": "cpu_usage_ratio", "indicators": [level]}],
        })  # fmt: skip
        pods = [
            WorkloadPod(str(UUID(int=roll.getrandbits(128))), "default", f"{name}-{place}", name,
                        f"node-{roll.randrange(NODES)}", f"2026-01-01T00:00:{place:02}Z", True, {}, descriptor=name)
            for place in range(PODS)
        ]  # fmt: skip
        found.append((DescriptorSeen(name, "default", name, spec), pods))
    return found


def one_pass(every: Services) -> dict[str, tuple[ServiceHere, ...]]:
    """What central makes of all descriptors and pods."""
    return services_of_nodes((seen, told_of(seen, pods, {}), pods) for seen, pods in every)[0]


def spent_ms(work: Callable[[], object]) -> float:
    """Milliseconds of CPU, the median of a few."""
    found = []
    for _ in range(TRIES):
        began_s = time.process_time()
        work()
        found.append(1000 * (time.process_time() - began_s))
    return statistics.median(found)


async def _a_minute(wanted: dict[str, tuple[ServiceHere, ...]]) -> tuple[float, list[Received]]:
    """Seconds of CPU for a minute in which every node is told once, and what was said in it."""
    bus, heard = MemoryBus(), list[Received]()
    await bus.subscribe(state_subject(ServiceProfiles, "*"), heard.append)
    telling = NodeTelling(Wire(bus, LoopClock(), node="hub", service="central"))
    began_s = time.process_time()
    for _ in range(int(MINUTE_S / PASS_S)):
        await telling.publish(wanted, {})
        await asyncio.sleep(PASS_S)
    return time.process_time() - began_s, heard


def rows() -> list[Row]:
    """The figures of one cluster."""
    every, pods = services(), SERVICES * PODS
    progress(f"service profiles, {NODES} nodes, {pods} pods")
    pass_ms = spent_ms(lambda: one_pass(every))
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        minute_s, heard = runner.run(_a_minute(one_pass(every)))
    size_kb = statistics.median(len(one.data) for one in heard) / 1000
    some = heard[:500]
    node_ms = spent_ms(lambda: [profiles_in(ServiceProfiles.decode(one.data)) for one in some]) / len(some)
    return [
        Row(f"ServiceProfiles, CPU of central for a pass over {pods} pods", f"{pass_ms:.0f} ms", TRIES, "-"),
        Row(f"ServiceProfiles, CPU of central to tell {NODES} nodes", f"{minute_s:.2f} s/min", len(heard), "-"),
        Row("ServiceProfiles, size", f"{size_kb:.1f} kB", len(heard), "-"),
        Row("ServiceProfiles, CPU of an advisor for one", f"{node_ms:.2f} ms", len(some) * TRIES, "-"),
    ]


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return await asyncio.to_thread(rows)


def main() -> None:
    """Print the table."""
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
