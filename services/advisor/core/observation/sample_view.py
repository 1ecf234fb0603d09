"""`view_of` makes the view of one sample: containers that hold resources, and the node's memory."""

import math
from collections.abc import Iterator, Mapping

from services.advisor.core.model.containers import Containers
from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import HOLDING, ContainerView, Signs, View
from services.advisor.core.observation.placement import NO_PLACES, PodPlace, place_of
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeSample, PodReading, PoolReading
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.core.cpus.cpuset import CpuSet

CPI_FIGURE = "cpi"
"""Figure of a pool in `extra`. No source of Sublet measures it; a source of one's own may, for the policy `rama`."""


def view_of(sample: NodeSample, bounds: Bounds, places: Mapping[str, PodPlace] = NO_PLACES) -> View:
    """The view of a sample; pods that have ended hold nothing. `places`: where pods with CPUs of their own are."""
    found = [view for reading in sample.pods if reading.pod.phase in HOLDING for view in _containers(reading, places)]
    reclaimed, tenants = sample.pool(RECLAIM), sample.pool(SHARE)
    node = sample.node_reading
    # Kernels before 3.14 have no MemAvailable; free memory is the smaller figure, and so the careful one.
    available = node.memory_free_bytes if node.memory_available_bytes is None else node.memory_available_bytes
    return View(
        bounds=bounds,
        # One order, whatever the sample's: policies and sums must not depend on it (docs/facts/safety-
        # rules.md#rule-6-deterministic).
        containers=Containers(sorted(found, key=lambda c: (c.pod, c.name, c.uid))),
        tenants_usage_cores=tenants.cpu_usage_cores if tenants else None,
        memory=NodeMemory(
            total_bytes=node.memory_total_bytes,
            available_bytes=available,
            reclaimed_used_bytes=reclaimed.memory_usage_bytes if reclaimed else None,
            watermark_scale_factor=node.watermark_scale_factor,
        ),
        numas=_numas(sample, bounds),
        node_usage_cores=node.cpu_usage_cores,
        reclaimed_usage_cores=reclaimed.cpu_usage_cores if reclaimed else None,
        applications_usage_cores=_applications_cores(sample),
        signs=_signs(tenants) if tenants else Signs(),
    )


def _applications_cores(sample: NodeSample) -> float:
    """One in a pool's own cgroup is in the pool's figure, and one without a figure in the system's."""
    return math.fsum(one.cpu_usage_cores or 0.0 for one in sample.host_applications if not one.pool)


def _numas(sample: NodeSample, bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """NUMA nodes and their CPUs; none where these do not add up to the machine's: then they cannot be trusted."""
    online = CpuSet.parse(sample.node_reading.online_cpus)
    numas = tuple((node.numa, len(CpuSet.parse(node.cpus) & online)) for node in sample.numas)
    return tuple(node for node in numas if node[1]) if sum(cpus for _, cpus in numas) == bounds.cpus else ()


def _signs(pool: PoolReading) -> Signs:
    pressure = pool.cpu_pressure
    return Signs(
        waiting_tasks=pool.sched_wait_tasks,
        pressure_percent=None if pressure is None else pressure.some_avg10_percent,
        cycles_per_instruction=pool.extra.get(CPI_FIGURE),
    )


def has_no_rates(sample: NodeSample, view: View) -> bool:
    """Whether this is the first pass of a measuring life, and the CPU use of a shared container is unknown for it.

    The next pass has it; until then nothing is decided on such a sample (absent is not zero).
    """
    return sample.window_s is None and any(c.cpu.usage_cores is None for c in view.of("shared_cores"))


def _containers(reading: PodReading, places: Mapping[str, PodPlace]) -> Iterator[ContainerView]:
    """Every container that was asked for or measured, whichever list it is in."""
    asked = {container.name: container for container in reading.pod.containers}
    measured = {container.name: container for container in reading.containers}
    place = place_of(reading.pod, places.get(reading.pod.uid))
    for name in asked | measured:
        yield _container(reading.pod, place, name, asked.get(name), measured.get(name))


def _container(
    pod: Pod, place: PodPlace, name: str, asked: Container | None, measured: ContainerReading | None
) -> ContainerView:
    return ContainerView(
        pod=pod.key,
        uid=pod.uid,
        name=name,
        qos=pod.qos,
        request_cores=asked.cpu_request_millis / 1000 if asked else 0.0,
        request_bytes=asked.memory_request_bytes if asked else 0,
        cpu=Figures(measured.cpu_usage_cores, measured.load1, measured.load5) if measured else Figures(),
        memory=Resident(measured.memory_rss_bytes, measured.memory_cache_bytes) if measured else Resident(),
        limit_cores=asked.cpu_limit_millis / 1000 if asked else 0.0,
        pool=place.pool,
        cpus_per_numa=place.cpus_per_numa,
        dedicated=place.dedicated,
        bound=place.bound,
        exclusive=place.exclusive,
        runnable=measured.runnable_tasks if measured else None,
    )
