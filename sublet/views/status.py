"""One screen of the node: CPU map, pools, the reclaimed offer, pods, services, conditions, last evictions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shared.contracts.pod import QosClass
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import QOS_CLASSES, RECLAIM
from sublet.views.conditions import conditions
from sublet.views.cpu_map import machine_map
from sublet.views.facts import NodeFacts
from sublet.views.figures import amount, cores, memory
from sublet.views.headline import headline
from sublet.views.taints import line, shown_taints
from sublet.views.usage import Usage, pool_rows, table, usage_rows

LAST_EVICTIONS = 5
Line = tuple[str, Text]


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """The reclaimed resources: offered by qrm, asked for by pods, used by their cgroup."""

    offered_cpu_millis: int | None
    offered_memory_bytes: int | None
    requested_cpu_millis: int | None
    requested_memory_bytes: int | None
    used: Usage | None


def render(facts: NodeFacts, logs: Mapping[str, str] | None = None, *, wide: bool = False) -> RenderableType:
    """The screen; `wide` with each pod. `logs`: where each service of this machine writes, if it does not answer."""
    parts: list[RenderableType] = [_headline(facts)]
    if drawn := machine_map(facts):
        parts += ["", drawn]
    if rows := usage_rows(facts, pods=wide):
        parts += ["", table("pool / pod" if wide else "pool", rows)]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, words in _lines(facts, logs or {}):
        grid.add_row(title, words)
    return Group(*parts, "", grid)


def as_json(facts: NodeFacts) -> dict[str, Any]:
    """The same facts for programs: the services' own words, and who did not answer."""
    offer, said = reclaimed(facts), headline(facts)
    return {
        "node": facts.node,
        "headline": asdict(said) | {"ready": said.ready},
        "silent": list(facts.silent),
        "mode": facts.allocation.mode if facts.allocation else None,
        "node_mode": facts.answered("reporter", "mode", None),
        "allocation": facts.allocation.model_dump(mode="json") if facts.allocation else None,
        "reclaimed": {name: getattr(offer, name) for name in offer.__slots__ if name != "used"},
        "pods": pods_by_qos(facts.sample),
        "services": services(facts),
        "conditions": [{"type": kind, "message": message} for kind, message in conditions(facts)],
        "taints": facts.answered("evictor", "taints", None),
        "evictions": facts.answered("evictor", "recent", [])[:LAST_EVICTIONS],
        "central": facts.answers.get("central"),
    }


def reclaimed(facts: NodeFacts) -> Reclaimed:
    """Offer, requests and use."""
    pods = [r.pod for r in facts.sample.pods if r.pod.qos == "reclaimed_cores"] if facts.sample else None
    return Reclaimed(
        offered_cpu_millis=facts.allocation.reclaimed_cpu_millis if facts.allocation else None,
        offered_memory_bytes=facts.allocation.reclaimed_memory_bytes if facts.allocation else None,
        requested_cpu_millis=None if pods is None else sum(p.cpu_request_millis for p in pods),
        requested_memory_bytes=None if pods is None else sum(p.memory_request_bytes for p in pods),
        used=next((row for row in pool_rows(facts) if row.name == RECLAIM), None),
    )


def pods_by_qos(sample: NodeSample | None) -> dict[QosClass, list[str]] | None:
    """Pods by QoS class, ascending; None where no sample was told."""
    if sample is None:
        return None
    return {qos: sorted(r.pod.key for r in sample.pods if r.pod.qos == qos) for qos in QOS_CLASSES}


def services(facts: NodeFacts) -> list[dict[str, Any]]:
    """Each service: whether it answers now, and its health as the reporter folded it."""
    healths = {health.service: health for health in facts.healths}
    return [
        {
            "service": name,
            "answers": answer is not None,
            "ok": healths[name].ok if name in healths else None,
            "why": healths[name].why if name in healths else "",
            "input_age_s": healths[name].input_age_s if name in healths else None,
        }
        for name, answer in facts.answers.items()
    ]


def _headline(facts: NodeFacts) -> Text:
    said = headline(facts)
    text = Text(said.words(), "bold")
    style = "green" if said.ready else "red"
    text.highlight_words([", ".join(said.states)], style)
    if facts.allocation:
        text.append(
            f"\n{facts.allocation.ref} {facts.allocation.status}, lease {facts.allocation.lease_left_s:.0f} s",
            "not bold",
        )
        text.append(f", policy {facts.advice.policy}" if facts.advice else "", "not bold")
    return text


def _lines(facts: NodeFacts, logs: Mapping[str, str]) -> Iterator[Line]:
    offer = reclaimed(facts)
    used = offer.used or Usage(RECLAIM, None, None, None, None)
    yield _line(
        "Reclaimed",
        f"CPU {_millis(offer.offered_cpu_millis)} offered, {_millis(offer.requested_cpu_millis)} requested, "
        f"{cores(used.cpu_usage_cores)} used",
    )
    yield _line(
        "",
        f"memory {memory(offer.offered_memory_bytes)} offered, {memory(offer.requested_memory_bytes)} requested, "
        f"{memory(used.memory_bytes)} used",
    )
    pods = pods_by_qos(facts.sample)
    if pods is None:
        yield _line("Pods", "not known: metrics does not answer")
    else:
        counts = [f"{len(names)} {qos}" for qos, names in pods.items() if names]
        yield _line("Pods", f"{', '.join(counts)}; each of them: sublet top" if counts else "none")
    yield from _service_lines(facts, logs)
    for title, (kind, message) in _titled("Conditions", conditions(facts)):
        yield _line(title, f"{kind}: {message}", "yellow")
    for title, taint in _titled("Taints", shown_taints(facts.answered("evictor", "taints", []))):
        yield _line(title, line(taint), "yellow")
    for title, eviction in _titled("Evictions", facts.answered("evictor", "recent", [])[:LAST_EVICTIONS]):
        yield _line(title, _eviction(eviction))


def _service_lines(facts: NodeFacts, logs: Mapping[str, str]) -> Iterator[Line]:
    for title, row in _titled("Services", services(facts)):
        age = "" if row["input_age_s"] is None else f", input {row['input_age_s']:.1f} s old"
        if not row["answers"]:
            why = f": {row['why']}" if row["why"] else ""
            log = f" (log: {logs[row['service']]})" if row["service"] in logs else ""
            yield _line(title, f"{row['service']:<9} does not answer{why}{log}", "bold red")
        elif row["ok"] is False:
            yield _line(title, f"{row['service']:<9} not ok: {row['why']}{age}", "yellow")
        else:
            yield _line(title, f"{row['service']:<9} {'ok' if row['ok'] else 'answers'}{age}")


def _eviction(row: Any) -> str:
    if "intent" not in row:
        return str(row.get("error", row))
    intent = row["intent"]
    scope = intent["scope"]
    figures = f"observed {amount(scope, intent.get('observed'))}, threshold {amount(scope, intent.get('threshold'))}"
    name = f"{intent['namespace']}/{intent['pod']}"
    mark = "" if (mode := intent.get("mode", "enforce")) == "enforce" else f" [{mode}]"
    return f"{name} {row['step']}{mark}: {intent['plugin']}, {intent['scope']}, {figures}"


def _titled(title: str, rows: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The title on the first row only."""
    for position, row in enumerate(rows):
        yield (title if position == 0 else ""), row


def _line(title: str, words: str, style: str = "") -> Line:
    return title, Text(words, style)


def _millis(value: int | None) -> str:
    return cores(None if value is None else value / 1000)
