"""The chain of `sublet.views.explain.chain` for people: a sentence, then the pod's resources, use and limits."""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any

from sublet.views.explain.chain import Document
from sublet.views.explain.profile import profile_words
from sublet.views.explain.sentence import limit_name, pod_sentence
from sublet.views.figures import UNKNOWN, amount, cores, memory, moment_of

WIDTH = 100
_INDENT = 13


def brief_lines(document: Document) -> Iterator[str]:
    """One line after the other, none wider than a terminal."""
    yield from wrapped([f"pod {document['namespace']}/{document['name']} {pod_sentence(document)}"], "  ")
    for title, words in _rows(document):
        yield from wrapped([f"  {title:<{_INDENT - 2}}{words}"], " " * _INDENT)
    yield ""
    yield f"every step with its numbers: sublet explain pod/{document['name']} -n {document['namespace']} -o wide"


def wrapped(lines: Iterable[str], indent: str) -> Iterator[str]:
    """The lines, those that are too long on several; a word that is longer stays whole."""
    for line in lines:
        lead = line[: len(line) - len(line.lstrip())]
        yield from wrap(
            line.strip(), WIDTH, initial_indent=lead, subsequent_indent=indent, break_long_words=False,
            break_on_hyphens=False,
        ) or [""]  # fmt: skip


def _rows(document: Document) -> Iterator[tuple[str, str]]:
    if pod := document.get("pod"):
        yield "class", str(pod["qos"])
        yield "runs on", _place(document["placement"])
        yield "uses", _use(document["sample"])
        yield "asks for", f"{cores(pod['cpu_request_millis'] / 1000)} cores, {memory(pod['memory_request_bytes'])}"
        if service := list(profile_words(document.get("profile"))):
            yield "service", "; ".join(service)
        yield from _limits(document.get("outlook") or [])
    for row in document.get("refusals", ())[:3]:
        yield "not evicted", f"{row['last_age_s']:.0f} s ago, {row['guard']}: {row['why']}"
    for eviction in document["evictions"]:
        yield from _eviction(eviction)
    for service in document["silent"]:
        yield "not known", f"the part of {service}, which does not answer"


def _place(place: Document | None) -> str:
    if place is None:
        return "not known: qrm does not answer"
    if place["pool"] is None:
        return "no pool yet"
    limit = place["pool_memory_limit_bytes"]
    return f"CPUs {place['cpus'] or UNKNOWN} of pool {place['pool']}" + (
        f", memory of the pool at most {memory(limit)}" if limit else ""
    )


def _use(sample: Document | None) -> str:
    if sample is None:
        return "not known: metrics does not answer"
    use = sample["pod"]
    return f"{cores(use['cpu_usage_cores'])} cores, {memory(use['memory_bytes'])}"


def _limits(outlook: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What each plugin that could take this pod watches; a calm one is not said to evict."""
    for row in outlook:
        if row["place"] is None:
            continue
        scope = str(row["scope"] or "")
        side = "below" if row["below"] else "above"
        state = "calm" if not row["met"] else "pressure"
        mode = "" if row["mode"] == "enforce" else f", {row['mode']}"
        words = (
            f"{limit_name(scope)} is {amount(scope, row['observed'])}, acts {side} {amount(scope, row['threshold'])}"
        )
        spared = f"; spared: {row['says']}" if row["guard"] is not None else ""
        yield "limit", f"{words} ({state}{mode}; {row['plugin']}, turn {row['place']} of {row['of']}){spared}"


def _eviction(eviction: Document) -> Iterator[tuple[str, str]]:
    scope = str(eviction["scope"])
    observed, threshold = amount(scope, eviction.get("observed")), amount(scope, eviction.get("threshold"))
    step = f" {eviction['step']}" if eviction.get("step") else ""
    yield "eviction", f"by {eviction['plugin']}{step}: {limit_name(scope)} was {observed}, the limit is {threshold}"
    for phase in eviction["phases"]:
        detail = f" ({phase['detail']})" if phase["detail"] else ""
        yield "", f"{moment_of(phase['at'])}  {phase['phase']}{detail}"
