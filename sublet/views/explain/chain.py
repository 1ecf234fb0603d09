"""Why a pod runs where it runs, or why it was evicted: the chain of messages with the numbers they used.

Rule: docs/facts/safety-rules.md#rule-9-every-figure-explains-itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.contracts.allocation import Allocation
from shared.contracts.envelope import Reason
from shared.contracts.eviction import EvictionEvent
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from sublet.views.conditions import conditions
from sublet.views.explain.batch import batch_part
from sublet.views.explain.burst import burst_part
from sublet.views.explain.evictor import outlook_part, refusals_part
from sublet.views.explain.mid import mid_part
from sublet.views.explain.profile import profile_part
from sublet.views.facts import NodeFacts
from sublet.views.usage import Usage, pod_usage, pool_rows

Document = dict[str, Any]


def chain(
    facts: NodeFacts, events: Sequence[EvictionEvent], namespace: str, name: str, ended: Document | None = None
) -> Document | None:
    """Everything known about a pod, from its place back to the sample, and every eviction of that name.

    None where nobody has ever heard of it.

    Args:
        ended: what this host's record says of a pod of that name that has ended.
    """
    reading = _reading(facts, namespace, name)
    evictions = _evictions(facts, events, namespace, name)
    if reading is None and not evictions and ended is None:
        return None
    document: Document = {"namespace": namespace, "name": name, "silent": list(facts.silent)}
    document["observes"] = facts.observes
    if reading is not None:
        document["pod"] = _pod(reading.pod)
        document["placement"] = _placement(facts.allocation, reading.pod)
        document["advice"] = advice_part(facts)
        if reading.pod.qos == "reclaimed_cores" and (batch := batch_part(facts)) is not None:
            document["batch"] = batch
        if (mid := mid_part(facts, reading.pod)) is not None:
            document["mid"] = mid
        if (burst := burst_part(facts, reading.pod)) is not None:
            document["burst"] = burst
        if (profile := profile_part(facts, reading.pod)) is not None:
            document["profile"] = profile
        document["sample"] = _sample(facts, reading)
        document["outlook"] = outlook_part(facts, reading.pod.key, reading.pod.uid)
        document["paused"] = next((why for kind, why in conditions(facts) if kind == "EvictionsPaused"), None)
        document["refusals"] = refusals_part(facts, reading.pod.key, reading.pod.uid)
    elif ended is not None:
        document["ended"] = ended
    document["evictions"] = evictions
    return document


def _reading(facts: NodeFacts, namespace: str, name: str) -> PodReading | None:
    pods = facts.sample.pods if facts.sample else ()
    return next((r for r in pods if (r.pod.namespace, r.pod.name) == (namespace, name)), None)


def _pod(pod: Pod) -> Document:
    return {
        "uid": pod.uid,
        "qos": pod.qos,
        "phase": "Terminating" if pod.terminating else pod.phase,
        "cpu_request_millis": pod.cpu_request_millis,
        "memory_request_bytes": pod.memory_request_bytes,
    }


def _placement(allocation: Allocation | None, pod: Pod) -> Document | None:
    if allocation is None:
        return None
    entry = next((p for p in allocation.pods if p.uid == pod.uid), None)
    pool = allocation.pool(entry.pool) if entry else None
    return allocation_part(allocation) | {
        "pool": entry.pool if entry else None,
        "cpus": entry.cpus if entry else None,
        "mems": entry.mems if entry else None,
        "pool_cpus": pool.cpus if pool else None,
        "pool_memory_limit_bytes": pool.memory_limit_bytes if pool else None,
    }


def allocation_part(allocation: Allocation) -> Document:
    """The allocation itself: its state, the rule with its numbers, and what it was computed from."""
    return {
        "ref": allocation.ref,
        "status": allocation.status,
        "mode": allocation.mode,
        "lease_left_s": allocation.lease_left_s,
        "why": reasons_part(allocation.why),
        "based_on": list(allocation.based_on),
    }


def advice_part(facts: NodeFacts) -> Document | None:
    """The advice that the allocation rests on, with its rule and numbers; None where nobody tells."""
    advice = facts.advice
    if advice is None:
        return None
    return {
        "ref": advice.ref,
        "policy": advice.policy,
        "mode": advice.mode,
        "required_cores": advice.required_cores,
        "pools": {size.pool: advice.size_of(size.pool) for size in advice.pools},
        "reclaimed_cpu_millis": advice.reclaimed_cpu_millis,
        "reclaimed_memory_bytes": advice.reclaimed_memory_bytes,
        "why": reasons_part(advice.why),
        "based_on": list(advice.based_on),
    }


def _sample(facts: NodeFacts, reading: PodReading) -> Document | None:
    if facts.sample is None:
        return None
    return {
        "ref": facts.sample.ref,
        "trigger": facts.sample.trigger,
        "pod": usage_part(pod_usage(reading, None)),
        "pools": {row.name: usage_part(row) for row in pool_rows(facts)},
    }


def usage_part(row: Usage) -> Document:
    """What a pool or a pod uses."""
    return {"cpu_usage_cores": row.cpu_usage_cores, "load1": row.load1, "memory_bytes": row.memory_bytes}


def _evictions(facts: NodeFacts, events: Sequence[EvictionEvent], namespace: str, name: str) -> list[Document]:
    """Every intent about this name, newest first: from the evictor's ledger, else from the stream alone."""
    found: dict[str, Document] = {}
    for row in facts.answered("evictor", "recent", []):
        intent = row.get("intent") or {}
        if (intent.get("namespace"), intent.get("pod")) == (namespace, name):
            found[intent["intent_id"]] = _facts_of(intent) | {
                "step": row.get("step"),
                "detail": row.get("detail"),
                "calls": row.get("calls", []),
                "unpublished": [e["id"] for e in row.get("events", []) if not e.get("published")],
                "phases": [],
            }
    for event in events:
        if (event.namespace, event.pod) == (namespace, name):
            known = found.setdefault(event.intent_id, _facts_of(event.model_dump(mode="json")) | {"phases": []})
            known["phases"].append(
                {
                    "phase": event.phase,
                    "at": event.sent_at.isoformat(),
                    "message": event.message,
                    "detail": event.detail,
                }
            )
    return list(found.values())


def _facts_of(intent: Mapping[str, Any]) -> Document:
    kept = (
        "intent_id",
        "pod_uid",
        "qos",
        "plugin",
        "scope",
        "observed",
        "threshold",
        "grace_s",
        "mode",
        "based_on",
        "why",
    )
    return {key: intent[key] for key in kept if key in intent}


def reasons_part(reasons: Sequence[Reason]) -> list[Document]:
    """The rules that fired, each with the numbers it used."""
    return [{"rule": reason.rule, "numbers": reason.numbers} for reason in reasons]
