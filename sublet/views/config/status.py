"""The state of the newest configuration: the nodes that work with it, those that refuse it, and why."""

from collections.abc import Iterator
from typing import Any

from sublet.output import printable
from sublet.views.facts import NodeFacts

STATES = ("applied", "refused", "behind")


def as_json(facts: NodeFacts) -> dict[str, Any]:
    """For programs: central's counts over all nodes, and what the services of this node say."""
    told = facts.answered("central", "config", {})
    return {
        "revision": told.get("revision"),
        "file": told.get("file"),
        "file_refused": told.get("refused") or None,
        "nodes": told.get("nodes"),
        "refusals": told.get("refusals") or [],
        "services": [
            {
                "service": health.service,
                "revision": health.config_revision,
                "refused": health.config_refused and health.config_refused.model_dump(),
            }
            for health in facts.healths
            if health.config_revision is not None
        ],
    }


def refused(document: dict[str, Any]) -> bool:
    """Whether anybody refuses anything: central its file, or a node a revision."""
    by_services = any(row["refused"] for row in document["services"])
    return bool(document["file_refused"] or document["refusals"] or by_services)


def lines(document: dict[str, Any]) -> Iterator[str]:
    """For people; words of nodes are shown as printable text alone."""
    counts = document["nodes"] or {}
    told = ", ".join(f"{counts.get(state, 0)} {state}" for state in STATES)
    yield f"rev {document['revision'] or 0}: {told if counts else 'no node is counted yet'}"
    if document["file_refused"]:
        yield printable(f"  central refuses {document['file']}: {document['file_refused']}")
    for row in document["refusals"]:
        more = row["nodes"] - len(row["such_as"])
        nodes = ", ".join(row["such_as"]) + (f" and {more} more" if more > 0 else "")
        yield printable(f"  {row['nodes']} refuse rev {row['revision']}: {row['service']}: {row['why']} ({nodes})")
    for row in document["services"]:
        no = row["refused"]
        kept = f"works with rev {row['revision']}"
        words = f"refuses rev {no['revision']}, {kept}: {no['why']}" if no else kept
        yield printable(f"  {row['service']:<9} {words}")
