"""Decisions anew as a table and as a document; the same recording gives the same bytes."""

from typing import Any

from shared.contracts.cluster.decision import Decided
from sublet.output import columns, duration, printable
from sublet.replay.decisions.run import DecidedTwice, DecisionsOutcome
from sublet.replay.traces.frames import Faults

RESULTS = {
    "same": "the same",
    "different": "different",
    "not_replayed": "not replayed",
    "only_now": "said only now",
}
MAX_TABLE_ROWS = 200


def document(outcome: DecisionsOutcome, file: str, faults: Faults) -> dict[str, Any]:
    """Everything that is known, for programs."""
    areas = sorted({area for area, _ in outcome.counts})
    return {
        "files": [file],
        "frames": outcome.frames,
        "length_s": round(outcome.length_s, 3),
        "lost_frames": faults.lost_frames,
        "refused_frames": faults.refused_frames,
        "areas": {area: {result: outcome.counts[area, result] for result in RESULTS} for area in areas},
        "decisions": [_row(one) for one in outcome.rows],
        "answers": outcome.answers,
        "decisions_left_out": outcome.counts.total() - len(outcome.rows),
    }


def _row(one: DecidedTwice) -> dict[str, Any]:
    known = one.recorded or one.replayed
    return {
        "at_s": round(one.at_s, 3),
        "area": "" if known is None else known.area,
        "about": "" if known is None else str(known.about),
        "recorded": _decided(one.recorded),
        "replayed": _decided(one.replayed),
        "not_replayed": one.why_not,
        "differences": list(one.differences),
    }


def _decided(decided: Decided | None) -> dict[str, Any] | None:
    return None if decided is None else decided.model_dump(mode="json", include={"verdict", "message", "why"})


def table(found: dict[str, Any]) -> str:
    """The document as columns, below what was read."""
    lost = found["lost_frames"] + found["refused_frames"]
    lines = [
        f"{found['files'][0]}: {duration(found['length_s'])}, {found['frames']} frames"
        + (f", {lost} lost or refused" if lost else "")
    ]
    for area, counts in found["areas"].items():
        told = ", ".join(f"{counts[result]} {words}" for result, words in RESULTS.items() if counts[result])
        lines.append(f"{area}: {told}")
    if not found["areas"]:
        lines.append("no decision is in it, and nothing of which one could be made")
    rows = found["decisions"][:MAX_TABLE_ROWS]
    header = ["at", "area", "object", "recorded", "now", "difference"]
    parts = [*lines, "", columns(header, map(_cells, rows))] if rows else lines
    more = len(found["decisions"]) - len(rows) + found["decisions_left_out"]
    parts += [f"and {more} more: -o json"] if more else []
    return "\n".join([*parts, *(line for answer in found["answers"] for line in _answer(answer))])


def _answer(answer: dict[str, Any]) -> list[str]:
    """One line a value; the body of a refusal as it is."""
    head = ["", f"{answer['path']}: {answer['status']}"]
    items = answer["body"].get("items")
    if not isinstance(items, list):
        return [*head, printable(str(answer["body"].get("message", answer["body"])))]
    return [*head, *(printable(f"{_about(item)}: {item['value']}") for item in items)]


def _about(item: dict[str, Any]) -> str:
    known = item.get("describedObject", {})
    named = [known.get("kind"), known.get("namespace"), known.get("name")]
    metric = item.get("metric") or {}
    return "/".join(str(one) for one in [*named, metric.get("name") or item.get("metricName")] if one)


def _cells(row: dict[str, Any]) -> list[str]:
    recorded, replayed = row["recorded"], row["replayed"]
    return [
        duration(row["at_s"]),
        row["area"],
        row["about"],
        "" if recorded is None else recorded["verdict"],
        "" if replayed is None else replayed["verdict"],
        printable("; ".join(row["differences"]) or row["not_replayed"]),
    ]
