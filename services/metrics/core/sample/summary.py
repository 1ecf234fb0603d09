"""From raw readings to a NodeSample: the figures of all targets, the pools' totals, and what cannot be believed. Pure.

What says the same as in the last pass is taken over as it was built then.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.metrics.core.figures.compute import figures_of
from services.metrics.core.figures.figure import Offer, Offered, Total
from services.metrics.core.figures.results import Memory, Past, Reading, same_raw
from services.metrics.core.figures.target import NODE, Kind, Target
from services.metrics.core.sample.message import container_reading, model_of
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Unavailable

Pasts = dict[Target, Past]

USAGE = "cpu_usage_cores"
USAGE_SLACK, USAGE_SPARE = 1.25, 1.0
"""Usage above the machine's CPUs by more than a quarter and one is a broken counter, not a short window's error."""


def summarise(
    memory: Memory, readings: Mapping[Target, Reading], offered: Offered, pods: Sequence[Pod], now_s: float
) -> tuple[dict[str, Any], Memory]:
    """The fields of a NodeSample, and the memory for the next pass. `now_s` is when the pass began.

    A pool without any figure has no cgroup now and is left out; a container without one is listed, its figures absent.

    Raises:
        Unavailable: no reading says which CPUs are online, without which a sample means nothing.
    """
    past = {target: figures_of(memory, target, reading, offered, now_s) for target, reading in readings.items()}
    odd = _odd(past)
    _add_up(past, offered.get("pool", {}))
    _drop_incredible(past, odd)
    past = {target: one if one.rests else _built(memory, target, one) for target, one in past.items()}
    listed = _pods(memory, pods, {target.name: one for target, one in past.items() if target.kind == "container"})
    fields: dict[str, Any] = {
        "window_s": None if memory.at_s is None else max(0.0, now_s - memory.at_s),
        "node_reading": past[NODE].model,
        "numas": _models(past, "numa", lambda target: int(target.name)),
        "pools": _models(past, "pool", lambda target: target.name),
        "pods": tuple(listed.values()),
        "figure_ages_s": _ages(past, offered, now_s),
    }
    return fields, Memory(now_s, past, listed, odd)


def container_name(pod: Pod, container: str) -> str:
    """The name of a container's target."""
    return f"{pod.uid}/{container}"


def _name(target: Target, figure: str) -> str:
    return f"{target.kind} {target.name}".rstrip() + f": {figure}"


def _odd(past: Pasts) -> dict[str, str]:
    return {
        _name(target, figure): why
        for target, one in past.items()
        for done in one.done.values()
        if done.odd
        for figure, why in done.odd.items()
    }


def _add_up(past: Pasts, offered: Mapping[str, Offer]) -> None:
    """The totals of the pools.

    A container without the figure is left out: it is new. Where the source has failed for one, or all are new, the
    total is not known. A pool without containers has 0.
    """
    totals = [(source, f.name) for source, offer in offered.items() for f in offer.figures if isinstance(f, Total)]
    members: dict[str, list[Past]] = {}
    for target, one in past.items():
        if target.kind == "container":
            members.setdefault(target.pool, []).append(one)
    for pool in [target for target in past if target.kind == "pool"] if totals else ():
        own = members.get(pool.name, [])
        for source, name in totals:
            values = [value for one in own if isinstance(value := one.values.get(name), int | float)]
            failed = any(source not in one.reading.parts for one in own)
            if not failed and (values or not own):
                past[pool].values[name] = sum(values)


def _drop_incredible(past: Pasts, odd: dict[str, str]) -> None:
    """Take away usage that the machine's CPUs cannot have delivered.

    Raises:
        Unavailable: see `summarise`.
    """
    online = past[NODE].values.get("online_cpus") if NODE in past else None
    if not isinstance(online, str) or not online:
        raise Unavailable("node: no reading says which CPUs are online (sys/devices/system/cpu/online)")
    cpus = len(CpuSet.parse(online))
    most = cpus * USAGE_SLACK + USAGE_SPARE
    for target, one in past.items():
        usage = one.values.get(USAGE)
        if isinstance(usage, int | float) and usage > most:
            del one.values[USAGE]
            odd[_name(target, USAGE)] = f"{usage:.1f} cores on {cpus} CPUs: the counter jumped"


def _built(memory: Memory, target: Target, one: Past) -> Past:
    """With its part of the message: the one of the last pass where that says the same."""
    known = memory.past.get(target)
    if known is None or known.values != one.values:
        return one._replace(model=model_of(target, one.values))
    same = known.reading is one.reading or (known.rests and same_raw(known.reading, one.reading))
    return one._replace(model=known.model, rests=same)


def _models(past: Pasts, kind: Kind, order: Callable[[Target], int | str]) -> tuple[Any, ...]:
    of_kind = [target for target, one in past.items() if target.kind == kind and (one.values or kind != "pool")]
    return tuple(past[target].model for target in sorted(of_kind, key=order))


def _pods(memory: Memory, pods: Sequence[Pod], past: Mapping[str, Past]) -> dict[str, PodReading]:
    listed = {}
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        containers = tuple(_container(past.get(container_name(pod, c.name)), c.name) for c in pod.containers)
        known = memory.pods.get(pod.uid)
        if known is not None and known.pod is pod and _same(known.containers, containers):
            listed[pod.uid] = known
        else:
            listed[pod.uid] = PodReading(pod=pod, containers=containers)
    return listed


def _container(past: Past | None, name: str) -> Any:
    return container_reading(name) if past is None else past.model


def _same(known: Sequence[object], now: Sequence[object]) -> bool:
    return len(known) == len(now) and all(a is b for a, b in zip(known, now, strict=True))


def _ages(past: Pasts, offered: Offered, now_s: float) -> dict[str, float]:
    """The age of the oldest figure of each name among those that were not read in this pass."""
    gated = {kind: [name for name, offer in offers.items() if offer.gated] for kind, offers in offered.items()}
    oldest: dict[tuple[Kind, str], float] = {}
    for target, one in past.items():
        for source in gated.get(target.kind, ()):
            done = one.done[source]
            if done.part.at_s < oldest.get((target.kind, source), now_s) and done.values:
                oldest[target.kind, source] = done.part.at_s
    ages: dict[str, float] = {}
    for (kind, source), at_s in oldest.items():
        for figure in offered[kind][source].figures:
            ages[figure.name] = max(ages.get(figure.name, 0.0), round(now_s - at_s, 2))
    return {name: age_s for name, age_s in sorted(ages.items()) if age_s}
