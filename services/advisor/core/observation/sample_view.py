"""`view_of` makes the view of one sample: containers that hold resources, and the node's memory."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from services.advisor.core.model.containers import Containers
from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import HOLDING, ContainerView, Signs, View, waiting_signs
from services.advisor.core.model.wait import NO_QUOTA, NOT_MEASURED, Quota, Wait, stolen_ratio, wait_of
from services.advisor.core.observation.placement import NO_PLACES, PodPlace, place_of
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, GroupReading, NodeSample, PodReading, PoolReading
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.core.cpus.cpuset import CpuSet

CPI_FIGURE = "cpi"
"""Figure of a pool in `extra`: cycles per instruction, where metrics counts them (`metrics.perf`)."""


class SeenPods:
    """The views of the last sample's pods: of a pod that metrics hands on as it was, they are what they were."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[PodReading, PodPlace | None, float, Sequence[ContainerView]]] = {}

    def views(
        self, readings: Iterable[PodReading], places: Mapping[str, PodPlace], stolen: float
    ) -> list[ContainerView]:
        """Return the views of the containers of these pods."""
        # Refilled with the pods of this sample, so that those that are gone are forgotten.
        last, self._seen = self._seen, {}
        found: list[ContainerView] = []
        for reading in readings:
            uid = reading.pod.uid
            place, before = places.get(uid), last.get(uid)
            # The very same reading: to compare readings costs as much as to look at them.
            if before is None or before[0] is not reading or before[1:3] != (place, stolen):
                before = (reading, place, stolen, tuple(_containers(reading, places, stolen)))
            self._seen[uid] = before
            found += before[3]
        return found


def view_of(
    sample: NodeSample, bounds: Bounds, places: Mapping[str, PodPlace] = NO_PLACES, seen: SeenPods | None = None
) -> View:
    """The view of a sample; pods that have ended hold nothing. `places`: where pods with CPUs of their own are.
    `seen`: the views of the sample before, which spare those of pods that have not changed."""
    node = sample.node_reading
    stolen = stolen_ratio(node.cpu_usage_cores, node.cpu_steal_cores)
    holding = (reading for reading in sample.pods if reading.pod.phase in HOLDING)
    found = (seen or SeenPods()).views(holding, places, stolen)
    reclaimed, tenants = sample.pool(RECLAIM), sample.pool(SHARE)
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
        signs=_signs(tenants, found, stolen),
    )


def _applications_cores(sample: NodeSample) -> float:
    """One in a pool's own cgroup is in the pool's figure, and one without a figure in the system's."""
    return math.fsum(one.cpu_usage_cores or 0.0 for one in sample.host_applications if not one.pool)


def _numas(sample: NodeSample, bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """NUMA nodes and their CPUs; none where these do not add up to the machine's: then they cannot be trusted."""
    online = CpuSet.parse(sample.node_reading.online_cpus)
    numas = tuple((node.numa, len(CpuSet.parse(node.cpus) & online)) for node in sample.numas)
    return tuple(node for node in numas if node[1]) if sum(cpus for _, cpus in numas) == bounds.cpus else ()


def _signs(pool: PoolReading | None, containers: Sequence[ContainerView], stolen: float) -> Signs:
    """Return the tenants' waiting signs: from their containers if all that use CPU report them, otherwise from their
    pool."""
    signs = waiting_signs(containers)
    if pool is None:
        return signs
    if signs.waiting_tasks is None or any(_is_silent(one) for one in containers if one.qos == "shared_cores"):
        wait, told = _wait(pool, NO_QUOTA, stolen), signs.waiting_tasks
        # The pool does not know quotas: subtract what some containers are known to wait for besides CPUs.
        of_pool = None if wait.for_cpus is None else wait.for_cpus - signs.waiting_for_others
        if of_pool is not None and (told is None or of_pool > told):
            signs = Signs(of_pool, waiting_for_others=max(wait.for_others, signs.waiting_for_others))
    pressure = pool.cpu_pressure
    return replace(
        signs,
        pressure_percent=None if pressure is None else pressure.some_avg10_percent,
        cycles_per_instruction=pool.extra.get(CPI_FIGURE),
    )


def _is_silent(container: ContainerView) -> bool:
    """Return whether it uses CPU without reporting what it waits for."""
    return bool(container.cpu.usage_cores) and container.cpu.wait.for_cpus is None


def _wait(group: GroupReading, quota: Quota, stolen: float) -> Wait:
    """Return what the group's tasks waited for. Without a count, pressure stands for one task on each CPU that it
    used."""
    usage, waiting = group.cpu_usage_cores, group.sched_wait_tasks
    if usage is None:
        return NOT_MEASURED
    if waiting is None:
        if group.cpu_pressure is None:
            return NOT_MEASURED
        # docs/facts/linux-cpu.md#pressure
        waiting = group.cpu_pressure.some_avg10_percent / 100 * usage
    return wait_of(usage, waiting, quota, stolen)


def has_no_rates(sample: NodeSample, view: View) -> bool:
    """Whether this is the first pass of a measuring life, and the CPU use of a shared container is unknown for it.

    The next pass has it; until then nothing is decided on such a sample (absent is not zero).
    """
    return sample.window_s is None and any(c.cpu.usage_cores is None for c in view.of("shared_cores"))


def _containers(reading: PodReading, places: Mapping[str, PodPlace], stolen: float) -> Iterator[ContainerView]:
    """Every container that was asked for or measured, whichever list it is in."""
    asked = {container.name: container for container in reading.pod.containers}
    measured = {container.name: container for container in reading.containers}
    place = place_of(reading.pod, places.get(reading.pod.uid))
    for name in asked | measured:
        yield _container(reading.pod, place, asked.get(name), measured.get(name) or ContainerReading(name=name), stolen)


def _container(
    pod: Pod, place: PodPlace, asked: Container | None, measured: ContainerReading, stolen: float
) -> ContainerView:
    limit_cores = asked.cpu_limit_millis / 1000 if asked else 0.0
    wait = _wait(measured, Quota(limit_cores, measured.throttled_cores or 0.0), stolen)
    return ContainerView(
        pod=pod.key,
        uid=pod.uid,
        name=measured.name,
        qos=pod.qos,
        request_cores=asked.cpu_request_millis / 1000 if asked else 0.0,
        request_bytes=asked.memory_request_bytes if asked else 0,
        cpu=Figures(measured.cpu_usage_cores, measured.load1, measured.load5, wait),
        memory=Resident(measured.memory_rss_bytes, measured.memory_cache_bytes),
        limit_cores=limit_cores,
        pool=place.pool,
        cpus_per_numa=place.cpus_per_numa,
        dedicated=place.dedicated,
        bound=place.bound,
        exclusive=place.exclusive,
        runnable=measured.runnable_tasks,
    )
