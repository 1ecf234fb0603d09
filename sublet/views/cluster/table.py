"""A cluster from its API server: one line per node, the leader, and the state of the configuration."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.central.core.objects.nodes import ZONE_LABEL
from shared.contracts.cluster.pauses import POOL_LABEL
from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.contracts.kube.node_properties import AGENT_REVISION, AGENT_VERSION
from shared.contracts.kube.quantities import parse_units
from shared.contracts.kube.taint import TAINT_PREFIX
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, canonical_resource
from sublet.cluster.reading import ClusterReading
from sublet.output import age, columns
from sublet.views.figures import cores, memory

Document = Mapping[str, Any]
ON_NODE = "ON-NODE"
HEADER = ("NODE", "CPU", "MEMORY", ON_NODE, "AGENT", "VERSION", "SAID", "TAINTS")
MOST_LINES, NAMED = 30, 10
"""More nodes than that are counted, and so many of those that are not well are named, so that all fits one screen."""
CONFIG_HEADER = ("CONFIG", "NAME", "VALID", "NODES", "MESSAGE")


def render(reading: ClusterReading) -> str:
    """For people. CPU and MEMORY are what the node offers, ON-NODE the CPU that a scheduler still sees."""
    rows = list(node_rows(reading))
    shown = rows if len(rows) <= MOST_LINES else [row for row in rows if not is_well(row)][:NAMED]
    table = columns(HEADER, [_cells(row, reading.now) for row in shown]) if shown else ""
    counted = summary(rows) if len(rows) > MOST_LINES else "" if rows else "no nodes"
    parts = [*filter(None, (counted, table)), f"central: {_leader(reading)}{_pauses(reading)}"]
    if configs := [_config_cells(one) for one in reading.configs]:
        parts.append(columns(CONFIG_HEADER, configs))
    return "\n\n".join(parts)


def is_well(row: Mapping[str, Any]) -> bool:
    """Whether there is nothing to look at: the agent is well, and nothing is withdrawn or tainted."""
    return row["agent"] == "ready" and not row["withdrawn"] and not row["taints"]


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Many nodes in a few lines: how many are well, what they offer together, and what the others are."""
    ill = [row for row in rows if not is_well(row)]
    states = Counter(row["agent"] or "unknown" for row in rows)
    versions = Counter(row["version"] or "unknown" for row in rows)
    offered_cpu = sum(row["reclaimed_cpu_millis"] or 0 for row in rows)
    offered_memory = sum(row["reclaimed_memory_bytes"] or 0 for row in rows)
    named = f"; {min(len(ill), NAMED)} of them below, all: sublet nodes --not-ready" if ill else ""
    return "\n".join([
        f"nodes:    {len(rows)}, {len(rows) - len(ill)} well, {len(ill)} not{named}",
        f"agents:   {_counted(states)}",
        f"versions: {_counted(versions)}",
        f"offer:    {_cpu(offered_cpu)} CPUs, {memory(offered_memory)}; withdrawn on "
        f"{sum(bool(row['withdrawn']) for row in rows)}, tainted {sum(bool(row['taints']) for row in rows)}",
    ])  # fmt: skip


def _pauses(reading: ClusterReading) -> str:
    if reading.pauses is None:
        return "\nevictions: you may not read whether they are paused (ConfigMap sublet-pauses)"
    return "".join(f"\nevictions are PAUSED: {one.words}" for one in reading.pauses if one.holds(reading.now))


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(found.items(), key=lambda row: (-row[1], row[0])))


def as_json(reading: ClusterReading) -> dict[str, Any]:
    """The same for programs; what is not told is null."""
    return {
        "nodes": list(node_rows(reading)),
        "central": (reading.lease or {}).get("spec"),
        "pauses": None if reading.pauses is None else [
            one.model_dump(mode="json") for one in reading.pauses if one.holds(reading.now)
        ],
        "configs": [
            {"kind": one["kind"], **{key: one["metadata"].get(key) for key in ("namespace", "name")},
             "status": one.get("status")}
            for one in reading.configs
        ],
    }  # fmt: skip


def node_table(documents: Sequence[Document], now: datetime) -> str:
    """CustomNodeResources alone, one line each: without what the Nodes show."""
    told = [HEADER, *(_cells(_row(one["metadata"]["name"], one, {}), now) for one in documents)]
    header, *rows = ([cell for title, cell in zip(HEADER, line, strict=True) if title != ON_NODE] for line in told)
    return columns(header, rows)


def node_lines(rows: Sequence[Mapping[str, Any]], now: datetime, *, wide: bool, header: bool = True) -> str:
    """One line for each of these nodes; wide ones say pool and zone, and whether their offer is withdrawn."""
    more = ("POOL", "ZONE", "WITHDRAWN") if wide else ()
    cells = [(*_cells(row, now), *_more_cells(row)) if wide else tuple(_cells(row, now)) for row in rows]
    text = columns((*HEADER, *more), cells)
    return text if header else text.partition("\n")[2]


def _more_cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["pool"] or "", row["zone"] or "", {True: "yes", False: "no"}.get(row["withdrawn"], "")


def node_rows(reading: ClusterReading) -> Iterator[dict[str, Any]]:
    """Nodes, and objects of nodes that are gone, by name."""
    nodes = {one["metadata"]["name"]: one for one in reading.nodes}
    objects = {one["metadata"]["name"]: one for one in reading.node_objects}
    for name in sorted(nodes.keys() | objects.keys()):
        yield _row(name, objects.get(name, {}), nodes.get(name, {}))


def _row(name: str, cnr: Document, node: Document) -> dict[str, Any]:
    offered, shown = _amounts(cnr, "resourceAllocatable"), _amounts(node, "allocatable")
    conditions = {one["type"]: one for one in _status(cnr).get("conditions") or ()}
    ready, services = conditions.get("AgentReady", {}), conditions.get("ServicesReady", {})
    own = (taint["key"] for taint in (node.get("spec") or {}).get("taints") or ())
    taints = {key for key in own if key.startswith(TAINT_PREFIX)}
    taints |= {taint["key"] for taint in (cnr.get("spec") or {}).get("taints") or ()}
    labels = (node or cnr)["metadata"].get("labels") or {}
    withdrawn = str(conditions.get(WITHDRAWN, {}).get("status"))
    return {
        "node": name,
        "pool": labels.get(POOL_LABEL),
        "zone": labels.get(ZONE_LABEL),
        "reclaimed_cpu_millis": offered.get(RECLAIMED_CPU),
        "reclaimed_memory_bytes": offered.get(RECLAIMED_MEMORY),
        "node_cpu_millis": shown.get(RECLAIMED_CPU),
        "agent": {"True": "ready", "False": ready.get("reason")}.get(str(ready.get("status"))),
        "version": _property(cnr, AGENT_VERSION),
        "revision": _property(cnr, AGENT_REVISION),
        "withdrawn": {"True": True, "False": False}.get(withdrawn),
        "said_at": services.get("lastHeartbeatTime"),
        "taints": sorted(taints),
    }


def _amounts(document: Document, part: str) -> dict[str, int]:
    """Reclaimed amounts by today's name; where both names are there today's is the one that counts."""
    amounts = _status(document).get(part) or {}
    older = {canonical_resource(name): parse_units(amount) for name, amount in amounts.items() if "reclaimed" in name}
    return older | {name: parse_units(amounts[name]) for name in (RECLAIMED_CPU, RECLAIMED_MEMORY) if name in amounts}


def _property(cnr: Document, name: str) -> str | None:
    """The first value of a property of the node's object."""
    properties = (cnr.get("spec") or {}).get("nodeResourceProperties") or ()
    values = next((one.get("propertyValues") for one in properties if one["propertyName"] == name), None)
    return str(values[0]) if values else None


def _cells(row: Mapping[str, Any], now: datetime) -> Sequence[str]:
    said = datetime.fromisoformat(row["said_at"]) if row["said_at"] else None
    return (
        row["node"],
        _cpu(row["reclaimed_cpu_millis"]),
        memory(row["reclaimed_memory_bytes"]),
        _cpu(row["node_cpu_millis"]),
        row["agent"] or "",
        "+".join(filter(None, (row["version"], row["revision"]))),
        f"{age(said, now)} ago" if said else "",
        ",".join(row["taints"]),
    )


def _cpu(millis: int | None) -> str:
    return cores(None if millis is None else millis / 1000)


def _leader(reading: ClusterReading) -> str:
    spec = (reading.lease or {}).get("spec") or {}
    if not spec.get("holderIdentity"):
        return "nobody leads"
    renewed = spec.get("renewTime")
    since = f", renewed {age(datetime.fromisoformat(renewed), reading.now)} ago" if renewed else ""
    return f"{spec['holderIdentity']} leads{since}"


def _config_cells(one: Document) -> Sequence[str]:
    meta, status = one["metadata"], _status(one)
    valid: Document = next((row for row in status.get("conditions") or () if row["type"] == "Valid"), {})
    reached = f"{status.get('updatedTargetNodes', 0)}/{status['targetNodes']}" if "targetNodes" in status else ""
    name = f"{meta.get('namespace', '')}/{meta['name']}"
    return (one["kind"], name, str(valid.get("status") or ""), reached, str(valid.get("message") or ""))


def _status(document: Document) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document.get("status") or {}
    return found
