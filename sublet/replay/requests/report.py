"""What is recommended as a table and as a document; the same input gives the same bytes."""

from collections.abc import Iterable, Sequence
from typing import Any

from services.central.core.recommendation.advice import ContainerAdvice
from services.central.core.recommendation.ledger import WorkloadUsage
from services.central.core.recommendation.objects.status import quantities
from services.central.core.recommendation.validity import RESOURCES
from sublet.output import columns, duration
from sublet.replay.requests.run import MAX_WORKLOADS, RequestsReplay
from sublet.replay.requests.tally import GivenFigures, UseTally
from sublet.replay.requests.watched import WatchedWorkload
from sublet.replay.traces.frames import Faults

RECOMMENDED = "Recommended"


def document(replay: RequestsReplay, files: Sequence[str], faults: Faults) -> dict[str, Any]:
    """Everything that is known, for programs; units are in the names."""
    rules = replay.rules
    return {
        "files": list(files),
        "frames": replay.frames,
        "length_s": round(replay.at_s, 3),
        "lost_frames": faults.lost_frames,
        "refused_frames": faults.refused_frames,
        "gaps_s": round(faults.gaps_s, 3),
        "buffer_percent": rules.buffer_percent,
        "min_history_s": rules.min_history_s,
        "reclaimed_pods_left_out": len(replay.reclaimed),
        "kills": sum(len(one.newest_kills(replay.now.timestamp())) for one in _usages(replay)),
        "workloads_left_out": replay.left_out,
        "workloads": [_workload(replay, replay.watched[workload]) for workload in sorted(replay.watched)],
    }


def _usages(replay: RequestsReplay) -> Iterable[WorkloadUsage]:
    known = (replay.ledger.of(workload.uid) for workload in replay.watched)
    return (usage for usage in known if usage is not None)


def _workload(replay: RequestsReplay, watched: WatchedWorkload) -> dict[str, Any]:
    now_s = replay.now.timestamp()
    missing, advice = watched.hindrance(replay.ledger, now_s), watched.advice(replay.ledger, now_s)
    return {
        "namespace": watched.workload.namespace,
        "kind": watched.workload.kind,
        "name": watched.workload.name,
        "pods": watched.pods,
        "says": RECOMMENDED if missing is None else missing.reason,
        "message": "" if missing is None else missing.said,
        "containers": [_container(watched, name, advice.get(name)) for name in sorted(watched.deployment.containers)],
        "given": [_given(one, replay.at_s) for one in watched.given],
    }


def _container(watched: WatchedWorkload, name: str, advice: ContainerAdvice | None) -> dict[str, Any]:
    requests = watched.deployment.containers[name].requests
    found: dict[str, Any] = {
        "name": name,
        "confidence_days": None if advice is None else round(advice.confidence_days, 3),
    }
    for resource in RESOURCES:
        tally = watched.tallies.get((name, resource))
        found[resource] = {
            "requested": requests.get(resource),
            "recommended": None if advice is None else advice.target.get(resource),
            "peak": None if tally is None else tally.peak,
            "above_requested_percent": _above_request(tally),
            "above_recommended_percent": _above(tally, advice, resource),
        }
    return found


def _above_request(tally: UseTally | None) -> float | None:
    return None if tally is None else _percent(tally.above_request_s, tally.requested_s)


def _above(tally: UseTally | None, advice: ContainerAdvice | None, resource: str) -> float | None:
    bound = None if advice is None else advice.target.get(resource)
    return None if tally is None or bound is None else _percent(tally.above_s(bound), tally.total_s)


def _given(one: GivenFigures, end_s: float) -> dict[str, Any]:
    return {
        "container": one.container,
        "from_s": round(one.at_s, 3),
        "until_s": round(end_s if one.until_s is None else one.until_s, 3),
        **{
            resource: {
                "recommended": one.target.get(resource),
                "above_percent": _percent(one.above_s[resource], one.judged_s[resource]),
            }
            for resource in RESOURCES
        },
        "memory_exceeded": one.memory_exceeded,
    }


def _percent(part_s: float, whole_s: float) -> float | None:
    return round(100 * part_s / whole_s, 2) if whole_s > 0 else None


def table(found: dict[str, Any], *, wide: bool) -> str:
    """The document as columns, below what was read; `wide` adds the figures that would have been given over time."""
    parts = [*_headlines(found), "", _now(found)]
    if wide:
        parts += ["", *_over_time(found)]
    return "\n".join(parts)


def _headlines(found: dict[str, Any]) -> list[str]:
    lost = found["lost_frames"] + found["refused_frames"]
    lines = [
        f"{', '.join(found['files'])}: {duration(found['length_s'])}, {found['frames']} frames"
        + (f", {lost} lost or refused" if lost else ""),
        f"90th percentile of use and {found['buffer_percent']} %; above: share of the time in which more was used",
    ]
    if count := found["reclaimed_pods_left_out"]:
        lines.append(f"{count} pod{'' if count == 1 else 's'} of reclaimed_cores left out: they ask for what is idle")
    if count := found["kills"]:
        lines.append(f"{count} container{' was' if count == 1 else 's were'} killed for want of memory: it counts")
    if found["workloads_left_out"]:
        lines.append(f"only the first {MAX_WORKLOADS} workloads are looked at")
    lines += [
        f"together {resource}: {_quantity(resource, asked)} requested, {_quantity(resource, recommended)} recommended"
        for resource in RESOURCES
        for asked, recommended in [_together(found, resource)]
        if asked
    ]
    return lines


def _together(found: dict[str, Any], resource: str) -> tuple[int, int]:
    """Of all containers of which both are known, times their pods."""
    rows = [
        (workload["pods"], container[resource])
        for workload in found["workloads"]
        for container in workload["containers"]
        if None not in (container[resource]["requested"], container[resource]["recommended"])
    ]
    return sum(n * row["requested"] for n, row in rows), sum(n * row["recommended"] for n, row in rows)


def _now(found: dict[str, Any]) -> str:
    header = ["workload", "container", "pods"]
    for resource in RESOURCES:
        header += [f"{resource} requested", "above %", f"{resource} recommended", "above %", "peak"]
    rows = [
        [
            f"{workload['namespace']}/{workload['kind']}/{workload['name']}",
            container["name"],
            str(workload["pods"]),
            *(cell for resource in RESOURCES for cell in _cells(resource, container[resource])),
            workload["says"],
        ]
        for workload in found["workloads"]
        for container in workload["containers"]
    ]
    return columns([*header, "ResourceRecommend says"], rows, right=range(2, len(header)))


def _cells(resource: str, figures: dict[str, Any]) -> Iterable[str]:
    return (
        _quantity(resource, figures["requested"]),
        _share(figures["above_requested_percent"]),
        _quantity(resource, figures["recommended"]),
        _share(figures["above_recommended_percent"]),
        _quantity(resource, figures["peak"]),
    )


def _over_time(found: dict[str, Any]) -> list[str]:
    rows = [
        [
            f"{workload['namespace']}/{workload['kind']}/{workload['name']}",
            given["container"],
            duration(given["from_s"]),
            duration(given["until_s"]),
            *(cell for name in RESOURCES for cell in (_quantity(name, given[name]["recommended"]),
                                                      _share(given[name]["above_percent"]))),
            str(given["memory_exceeded"]),
        ]
        for workload in found["workloads"]
        for given in workload["given"]
    ]  # fmt: skip
    if not rows:
        return [f"given over time: nothing before {duration(found['min_history_s'])} of use are known (--min-history)"]
    header = ["workload", "container", "from", "until", "cpu", "above %", "memory", "above %", "memory exceeded"]
    return ["given over time, and what was used meanwhile:", columns(header, rows, right=range(2, len(header)))]


def _quantity(resource: str, amount: int | None) -> str:
    return "" if amount is None else quantities({resource: amount})[resource]


def _share(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.1f}"
