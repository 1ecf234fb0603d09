"""Why a pod was not evicted, and what would evict it: each plugin's current order of victims, and all recorded
refusals."""

from collections.abc import Iterator, Mapping
from typing import Any

from sublet.views.facts import NodeFacts
from sublet.views.figures import amount, value_text

Document = dict[str, Any]


def outlook_part(facts: NodeFacts, key: str, uid: str) -> list[Document] | None:
    """What each plugin would do with this pod, by the plugin's name; None where the evictor does not tell."""
    told: Mapping[str, Any] | None = facts.answered("evictor", "outlook", None)
    if told is None:
        return None
    modes = facts.answered("evictor", "plugins", {})
    return [
        {
            "plugin": name,
            "mode": (modes.get(name) or {}).get("mode"),
            "hold": (modes.get(name) or {}).get("hold"),
            **{word: seen.get(word) for word in ("met", "hard", "scope", "observed", "threshold", "below")},
            **_place(seen.get("line") or [], key, uid),
        }
        for name, seen in sorted(told.items())
    ]


def refusals_part(facts: NodeFacts, key: str, uid: str) -> list[Document]:
    """Every no about this pod, the newest first; where there was none, those that held a plugin as a whole."""
    told: list[Document] = facts.answered("evictor", "refusals", [])
    # A pod made anew under its name has not been refused anything yet.
    about = [row for row in told if row.get("pod") == key and row.get("uid") in ("", uid)]
    return about or [row for row in told if not row.get("pod")]


def _place(line: list[Mapping[str, Any]], key: str, uid: str) -> Document:
    for place, row in enumerate(line, start=1):
        if (row["pod"], row["uid"]) == (key, uid):
            return {"place": place, "of": len(line), "why": row["why"], "guard": row["guard"], "says": row["says"]}
    return {"place": None, "of": len(line), "why": None, "guard": None, "says": ""}


def outlook_lines(document: Document) -> Iterator[str]:
    """The outlook and the refusals as text."""
    outlook = document.get("outlook")
    if outlook is None:
        return
    named = [seen for seen in outlook if seen["place"] is not None]
    if outlook and not named:
        yield "  no plugin would evict it: its going would help none of them"
    for seen in named:
        yield f"  {_would(seen)} {seen['plugin']} ({seen['mode']}), scope {seen['scope']}: {_distance(seen)}"
        yield f"    {_in_line(seen)}"
    for row in document.get("refusals", ()):
        times = f"{row['count']} times, " if row["count"] > 1 else ""
        whose = "" if row["pod"] else f"{row['plugin']}: "
        yield f"  not evicted ({row['guard']}; {times}last {row['last_age_s']:.0f} s ago): {whose}{row['why']}"


def _would(seen: Document) -> str:
    if seen["guard"] is not None:
        return "is spared by"
    if not seen["met"]:
        return "watched by"
    return "is about to be evicted by" if seen["hard"] and seen["hold"] is None else "under pressure of"


def _distance(seen: Document) -> str:
    scope = str(seen["scope"] or "")
    side = "below" if seen["below"] else "above"
    now = f"observed {amount(scope, seen['observed'])}, acts {side} {amount(scope, seen['threshold'])}"
    if not seen["met"]:
        return f"{now}, calm"
    level = "hard" if seen["hard"] else "soft"
    return f"{now}, {level} pressure" + (f", held back: {seen['hold']}" if seen["hold"] else "")


def _in_line(seen: Document) -> str:
    numbers = ", ".join(f"{name} {value_text(value)}" for name, value in (seen["why"] or {}).get("numbers", {}).items())
    rule = (seen["why"] or {}).get("rule", "")
    line = f"number {seen['place']} of {seen['of']} in line by {rule}" + (f" ({numbers})" if numbers else "")
    return line if seen["guard"] is None else f"{line}; {seen['guard']}: {seen['says']}"
