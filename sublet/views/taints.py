"""The node's taints for people, and as part of its Node object."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from shared.contracts.kube.taint import Cause, Taint
from sublet.output import age, columns
from sublet.views.figures import number

HEADER = ("NAME", "TAINT", "EFFECT", "AGE", "CAUSE")


def line(taint: Taint) -> str:
    """One taint in one line: what, since when, and what was observed against which threshold when it was added."""
    since = f" since {taint.time_added:%Y-%m-%dT%H:%M:%SZ}" if taint.time_added else ""
    causes = "; ".join(_cause(cause) for cause in taint.causes)
    return f"{taint.key}:{taint.effect}{since}{f' ({causes})' if causes else ''}"


def node_document(node: str, taints: Sequence[Taint]) -> dict[str, Any]:
    """The Node as kubectl prints it, as far as Sublet knows it: its name and its taints."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node},
        "spec": {"taints": [taint.document(causes=False) for taint in taints]},
    }


def node_table(node: str, taints: Sequence[Taint]) -> str:
    """One line a taint; one without a taint where there is none."""
    now = datetime.now(UTC)
    rows = [
        (node, taint.key, taint.effect, age(taint.time_added, now), "; ".join(map(_cause, taint.causes)))
        for taint in taints
    ]
    return columns(HEADER, rows or [(node, "", "", "", "")])


def shown_taints(rows: Any) -> list[Taint]:
    """As the evictor tells them; one that cannot be read counts as not told."""
    found = []
    for row in rows if isinstance(rows, list) else []:
        try:
            found.append(Taint.model_validate(row))
        except ValidationError:
            continue
    return found


def _cause(cause: Cause) -> str:
    figures = f"observed {number(cause.observed)}, threshold {number(cause.threshold)}"
    return f"{cause.plugin}, {cause.scope}: {figures}"
