"""Make the fields of a NodeSample of what a pass read: all targets' figures, pools' totals, what is rejected. Pure.

A part of the message that has not changed since the last pass is taken over as it was built then.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.metrics.core.figures.cache import is_steady, result_of
from services.metrics.core.figures.compute import Offers
from services.metrics.core.figures.figure import OffersByKind, Total
from services.metrics.core.figures.results import LastPass, TargetReading, TargetResult
from services.metrics.core.figures.target import NODE, Kind, Target
from services.metrics.core.figures.values import NUMBER
from services.metrics.core.sample.message import container_reading, model_of
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Unavailable

Results = Mapping[Target, TargetResult]

USAGE = "cpu_usage_cores"
USAGE_SLACK, USAGE_SPARE = 1.25, 1.0
"""Usage above the machine's CPUs by more than a quarter and one is a broken counter, not a short window's error."""


def summarise(
    before: LastPass, readings: Mapping[Target, TargetReading], offered: OffersByKind, pods: Sequence[Pod], now_s: float
) -> tuple[dict[str, Any], LastPass]:
    """Return the fields of a NodeSample, and what this pass leaves for the next. `now_s` is the start of the pass.

    A pool without any figure has no cgroup now and is left out; a container without one is listed without figures.

    Raises:
        Unavailable: no reading says which CPUs are online, without which a sample is meaningless.
    """
    results = {
        target: result_of(before, target, reading, offered.get(target.kind, {}), now_s)
        for target, reading in readings.items()
    }
    rejected = _rejected(results)
    results |= _with_totals(results, offered.get("pool", {}))
    # After the totals, since a pool's sum may be impossible too; before the message is built from them.
    impossible, why = _impossible_usage(results)
    results, rejected = results | impossible, rejected | why
    results = {
        target: one if one.steady else _with_model(before.results.get(target), target, one)
        for target, one in results.items()
    }
    listed = _pods(before, pods, {target.name: one for target, one in results.items() if target.kind == "container"})
    fields: dict[str, Any] = {
        "window_s": None if before.at_s is None else max(0.0, now_s - before.at_s),
        "node_reading": results[NODE].model,
        "numas": _models(results, "numa", lambda target: int(target.name)),
        "pools": _models(results, "pool", lambda target: target.name),
        "pods": tuple(listed.values()),
        "figure_ages_s": _ages(results, offered, now_s),
    }
    return fields, LastPass(now_s, results, listed, rejected)


def container_name(pod: Pod, container: str) -> str:
    """The name of a container's target."""
    return f"{pod.uid}/{container}"


def _name(target: Target, figure: str) -> str:
    return f"{target.kind} {target.name}".rstrip() + f": {figure}"


def _rejected(results: Results) -> dict[str, str]:
    return {
        _name(target, figure): why
        for target, one in results.items()
        for source in one.sources.values()
        if source.rejected
        for figure, why in source.rejected.items()
    }


def _with_totals(results: Results, offers: Offers) -> dict[Target, TargetResult]:
    """The pools with their totals.

    A container without the figure is left out: it is new. Where the source has failed for one, or all are new, the
    total is not known. A pool without containers has 0.
    """
    totals = [(source, f.name) for source, offer in offers.items() for f in offer.figures if isinstance(f, Total)]
    if not totals:
        return {}
    members: dict[str, list[TargetResult]] = {}
    for target, one in results.items():
        if target.kind == "container":
            members.setdefault(target.pool, []).append(one)
    return {
        target: one._replace(values={**one.values, **_totals(members.get(target.name, ()), totals)})
        for target, one in results.items()
        if target.kind == "pool"
    }


def _totals(members: Sequence[TargetResult], totals: Sequence[tuple[str, str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for source, name in totals:
        values = [value for one in members if isinstance(value := one.values.get(name), NUMBER)]
        failed = any(source not in one.reading.sources for one in members)
        if not failed and (values or not members):
            found[name] = sum(values)
    return found


def _impossible_usage(results: Results) -> tuple[dict[Target, TargetResult], dict[str, str]]:
    """The targets with more usage than the machine's CPUs can have delivered, without it, and why.

    Raises:
        Unavailable: see `summarise`.
    """
    online = results[NODE].values.get("online_cpus") if NODE in results else None
    if not isinstance(online, str) or not online:
        raise Unavailable("node: no reading says which CPUs are online (sys/devices/system/cpu/online)")
    cpus = len(CpuSet.parse(online))
    most = cpus * USAGE_SLACK + USAGE_SPARE
    found: dict[Target, TargetResult] = {}
    why: dict[str, str] = {}
    for target, one in results.items():
        usage = one.values.get(USAGE)
        if isinstance(usage, NUMBER) and usage > most:
            found[target] = one._replace(values={name: value for name, value in one.values.items() if name != USAGE})
            why[_name(target, USAGE)] = f"{usage:.1f} cores on {cpus} CPUs: the counter jumped"
    return found, why


def _with_model(last: TargetResult | None, target: Target, one: TargetResult) -> TargetResult:
    """With its part of the message: the one of the last pass where the figures are the same."""
    if last is None or last.values != one.values:
        return TargetResult(one.reading, one.at_s, one.sources, one.values, model_of(target, one.values))
    return TargetResult(one.reading, one.at_s, one.sources, one.values, last.model, is_steady(last, one))


def _models(results: Results, kind: Kind, order: Callable[[Target], int | str]) -> tuple[Any, ...]:
    of_kind = [target for target, one in results.items() if target.kind == kind and (one.values or kind != "pool")]
    return tuple(results[target].model for target in sorted(of_kind, key=order))


def _pods(before: LastPass, pods: Sequence[Pod], results: Mapping[str, TargetResult]) -> dict[str, PodReading]:
    listed = {}
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        containers = tuple(_container(results.get(container_name(pod, c.name)), c.name) for c in pod.containers)
        known = before.pods.get(pod.uid)
        # By identity, not by value: it is the list that was not read again, and comparing pods would
        # cost as much as building them.
        if known is not None and known.pod is pod and _same(known.containers, containers):
            listed[pod.uid] = known
        else:
            listed[pod.uid] = PodReading(pod=pod, containers=containers)
    return listed


def _container(result: TargetResult | None, name: str) -> Any:
    return container_reading(name) if result is None else result.model


def _same(known: Sequence[object], now: Sequence[object]) -> bool:
    return len(known) == len(now) and all(a is b for a, b in zip(known, now, strict=True))


def _ages(results: Results, offered: OffersByKind, now_s: float) -> dict[str, float]:
    """Return the age of the oldest figure of each name among those that were not read in this pass."""
    ages: dict[str, float] = {}
    for kind, offers in offered.items():
        own = [one.sources for target, one in results.items() if target.kind == kind]
        for name, offer in offers.items():
            # A source without figures has no age, because nothing of it could be old.
            read = [found.reading.at_s for sources in own if (found := sources[name]).values] if offer.gated else []
            for figure in offer.figures if read else ():
                ages[figure.name] = max(ages.get(figure.name, 0.0), round(now_s - min(read), 2))
    return {name: age_s for name, age_s in sorted(ages.items()) if age_s}
