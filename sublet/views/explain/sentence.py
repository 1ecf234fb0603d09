"""The first sentence of `sublet explain pod/NAME`: the state of the pod, and how close it is to eviction."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sublet.views.figures import amount

Document = Mapping[str, Any]
Row = Mapping[str, Any]

NEAR = 2.0
"""A limit that is less than this many times away is told with its figures."""
_FAR = 1000.0
_OOM = "OOMKilled"
_LIMITS = (
    ("reclaimed_millicpu", "CPU that reclaimed pods ask for"),
    ("reclaimed_memory", "memory that reclaimed pods ask for"),
    ("NumaMemory", "memory of a NUMA node"),
    ("mem.rss", "memory of the pod itself"),
    ("emory", "node memory"),
    ("rootfs.used", "disk space of the pod itself"),
    ("SystemRootfs", "node disk space"),
    ("cpu.load", "CPU load of its pool"),
    ("cpu.usage.sys", "system time of a NUMA node"),
    ("cpu.usage", "CPU use of a NUMA node"),
    ("cpu.suppression", "CPU that reclaimed pods ask for against what they get"),
    ("NICHealth", "time that a network card is down"),
)
"""What a plugin's scope means, by a part of it; the first that fits."""


def limit_name(scope: str) -> str:
    """What is limited, in words; a scope that is not known here stands for itself."""
    return next((words for part, words in _LIMITS if part in scope), scope)


def pod_sentence(document: Document) -> str:
    """One sentence on a pod that is here, or that was."""
    pod = document.get("pod")
    if pod is None:
        return _gone(document)
    state = {"Running": "runs", "Terminating": "is ending"}.get(pod["phase"], f"is {str(pod['phase']).lower()}")
    paused = "; evictions are paused" if document.get("paused") else ""
    if document.get("observes"):
        paused += "; the node only observes, so nothing is done to it"
    return f"{state}; {_safety(document.get('outlook'), document['silent'])}{paused}"


def _gone(document: Document) -> str:
    ended = document.get("ended")
    if ended is not None and (_OOM in ended["reasons"] or not document["evictions"]):
        return ended_words(ended)
    if not document["evictions"]:
        return "is not on this node any more"
    newest = document["evictions"][0]
    phases = [phase["phase"] for phase in newest["phases"]]
    step = newest.get("step") or (phases[-1] if phases else "begun")
    name, observed, limit = _figures(newest)
    # Events that somebody published to try a subscriber end like an eviction, and nobody has gone.
    real = newest.get("mode", "enforce") == "enforce"
    words = (
        "was evicted" if step == "succeeded" and real else f"is not on this node any more; its last eviction: {step}"
    )
    return f"{words} by {newest['plugin']}: {name} was {observed}, the limit is {limit}"


def ended_words(ended: Row) -> str:
    """How a pod of this host ended, by its record."""
    codes = ", ".join(str(code) for code in ended["exit_codes"])
    if _OOM in ended["reasons"]:
        return f"was killed for memory: {ended['message'] or 'more was used than there is'} (exit code {codes})"
    reasons = ", ".join(ended["reasons"])
    why = f"{reasons}: {ended['message']}" if reasons and ended["message"] else reasons or ended["message"]
    return f"has ended with exit code {codes or 'unknown'}" + (f" ({why})" if why else "")


def _safety(outlook: Sequence[Row] | None, silent: Sequence[str]) -> str:
    if outlook is None:
        return f"what could evict it is not known: the evictor does not {'answer' if 'evictor' in silent else 'tell'}"
    named = [row for row in outlook if row["place"] is not None]
    open_ = [row for row in named if row["guard"] is None and row["mode"] == "enforce"]
    met = [row for row in open_ if row["met"]]
    if due := [row for row in met if row["hard"] and row["hold"] is None]:
        return f"about to be evicted: {_against(due[0])}"
    if met:
        held = f", held back: {met[0]['hold']}" if met[0]["hold"] else ""
        return f"under pressure: {_against(met[0])}{held}"
    if open_:
        return _distance(min(open_, key=_times))
    if spared := next((row for row in named if row["guard"] is not None), None):
        return f"safe: it is spared ({spared['guard']}: {spared['says']})"
    return "safe: plugins that could evict it only watch" if named else "safe: no plugin would evict it"


def _distance(row: Row) -> str:
    times, (name, _, _) = _times(row), _figures(row)
    if times < NEAR:
        return f"near a limit: {_against(row)}"
    far = f"{times:.0f}" if times < _FAR else f"more than {_FAR:.0f}"
    return f"safe: {far} times away from the nearest limit ({name})"


def _times(row: Row) -> float:
    """How many times the figure would have to grow, or shrink, to meet its threshold."""
    observed, threshold = row["observed"], row["threshold"]
    if observed is None or threshold is None:
        return math.inf
    now, then = (threshold, observed) if row["below"] else (observed, threshold)
    return max(1.0, then / now) if now > 0 else math.inf


def _against(row: Row) -> str:
    name, observed, threshold = _figures(row)
    return f"{name} is {observed}, evictions begin {'below' if row['below'] else 'above'} {threshold}"


def _figures(row: Row) -> tuple[str, str, str]:
    scope = str(row.get("scope") or "")
    return limit_name(scope), amount(scope, row.get("observed")), amount(scope, row.get("threshold"))
