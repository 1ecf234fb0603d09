"""What the cluster's controllers decided about an object, the newest first."""

from collections.abc import Iterator, Sequence
from typing import Any

from shared.contracts.cluster.decision import Decision
from sublet.views.explain.chain import Document
from sublet.views.explain.chain_text import reason_lines
from sublet.views.figures import moment_of

SHOWN_OF_AREA = 3
"""Of each area so many are shown; JSON has all."""


def decisions_part(decisions: Sequence[Decision]) -> list[Document]:
    """All of them as JSON values, the newest first."""
    found = sorted(decisions, key=lambda one: (one.sent_at, one.seq), reverse=True)
    return [
        {
            "at": one.sent_at.isoformat().replace("+00:00", "Z"),
            "area": one.area,
            "object": str(one.about),
            **({"uid": one.about.uid} if one.about.uid else {}),
            "verdict": one.verdict,
            "message": one.message,
            "by": one.node,
            "why": [reason.model_dump(mode="json") for reason in one.why],
        }
        for one in found
    ]


def decision_lines(decisions: Sequence[Document], *, wide: bool) -> Iterator[str]:
    """One line after the other; wide: with every rule and its figures."""
    shown: dict[str, int] = {}
    for one in decisions:
        area = str(one["area"])
        shown[area] = shown.get(area, 0) + 1
        if shown[area] > SHOWN_OF_AREA and not wide:
            continue
        yield f"{moment_of(one['at'])}  {area}: {one['object']} {_words(one)}"
        # Of what was decided before, the reasons are of no use to whoever asks why it is as it is.
        if wide or shown[area] == 1:
            yield from reason_lines(one["why"])


def _words(one: dict[str, Any]) -> str:
    return f"{one['verdict']}: {one['message']}" if one["message"] else str(one["verdict"])
