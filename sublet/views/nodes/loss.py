"""What would happen if nodes fell silent, as lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from sublet.output import duration

MOMENTS_SHOWN = 30


def loss_lines(question: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    """First what is asked, then each moment, then what it comes to."""
    silent, nodes = len(question["silent"]), len(question["nodes"])
    yield f"{silent} of {nodes} nodes fall silent now, {_state_of(question)}:"
    moments = told["moments"]
    for moment in moments[:MOMENTS_SHOWN]:
        yield f"  after {duration(moment['at_s']):<8} {_words(moment)}"
    if len(moments) > MOMENTS_SHOWN:
        yield f"  ... {len(moments) - MOMENTS_SHOWN} more, the last after {duration(moments[-1]['at_s'])} (-o json)"
    if not moments:
        yield "  nothing happens"
    yield (
        f"in {duration(question.get('until_s', 3600.0))}: {told['withdrawn']} withdrawn, {told['tainted']} tainted, "
        f"{told['evicted_pods']} reclaimed pods evicted, {told['kept_pods']} kept; by the default rules of central"
    )


def _state_of(question: Mapping[str, Any]) -> str:
    if question.get("nodes_stale"):
        return "and their kubelets with them"
    if question.get("agents_ready"):
        return "while their agents are ready: the bus is cut"
    return "their agents dead and the nodes alive"


def _words(moment: Mapping[str, Any]) -> str:
    names = ", ".join(moment["such_as"]) + (", ..." if moment["nodes"] > len(moment["such_as"]) else "")
    match moment["what"]:
        case "withdrawn":
            return f"{moment['nodes']} offer nothing to reclaimed pods any more; no pod is touched ({names})"
        case "paused":
            return f"nothing further is done to them: {moment['why']}"
        case "resumed":
            return "the pause is over"
        case "tainted":
            return f"{names} is tainted for reclaimed pods"
        case _:
            return f"{moment['pods']} reclaimed pods of {names} are evicted"
