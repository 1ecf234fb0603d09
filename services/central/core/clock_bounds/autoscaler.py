"""HorizontalPodAutoscalers with a schedule: what must be written into each, and its former bounds.

An annotation of the autoscaler itself holds the bounds without the schedule, written together with the first change, so
every later leader and reader knows them. If a user edits the bounds meanwhile, the edit replaces them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from services.central.core.clock_bounds.replicas import LocalTime, ScheduledBounds, scheduled_bounds
from services.central.core.clock_bounds.schedule import SCHEDULE, Schedule
from shared.core.api_kind import ApiKind
from shared.core.text.document import dns_name, integer, mapping
from shared.core.text.json_text import read_json_object
from shared.errors import Refused

AUTOSCALERS: Final = ApiKind(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True
)
PLAIN: Final = "sublet.io/replica-schedule-plain"
"""The bounds without the schedule, and those that were written in their place."""
STATUS: Final = "sublet.io/replica-schedule-status"
MAX_STATUS: Final = 300
"""Characters."""

_MAX_PLAIN_BYTES: Final = 1024
_OURS: Final = (SCHEDULE, PLAIN, STATUS)


@dataclass(frozen=True, slots=True)
class AutoscalerSeen:
    """A HorizontalPodAutoscaler: its bounds, and the annotations that are about them."""

    namespace: str
    name: str
    least: int
    most: int
    annotations: Mapping[str, str]
    """Only our annotations."""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Kept:
    """The former bounds of an autoscaler, and those that replaced them."""

    plain: tuple[int, int]
    written: tuple[int, int]

    @property
    def text(self) -> str:
        """As the annotation has it."""
        named = {"minReplicas": self.plain[0], "maxReplicas": self.plain[1]}
        given = {"minReplicas": self.written[0], "maxReplicas": self.written[1]}
        return json.dumps({"plain": named, "written": given}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class AutoscalerChange:
    """What to write into an autoscaler; `bounds` is None if they stay unchanged."""

    annotations: Mapping[str, str | None]
    bounds: tuple[int, int] | None = None

    def document(self, seen: AutoscalerSeen, version: str) -> dict[str, Any]:
        """A merge patch for the version that was read: what somebody wrote since is looked at first."""
        meta = {"name": seen.name, "namespace": seen.namespace, "resourceVersion": version,
                "annotations": dict(self.annotations)}  # fmt: skip
        if self.bounds is None:
            return {"metadata": meta}
        return {"metadata": meta, "spec": {"minReplicas": self.bounds[0], "maxReplicas": self.bounds[1]}}


def autoscaler_of(document: Mapping[str, Any]) -> AutoscalerSeen | None:
    """Read an autoscaler from its document; None without an annotation of ours.

    Raises:
        Refused: it has no name or no bounds, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    annotations = mapping(meta.get("annotations"), "annotations")
    ours = {name: text for name in _OURS if isinstance(text := annotations.get(name), str)}
    if not ours:
        return None
    spec = mapping(document.get("spec"), "spec")
    return AutoscalerSeen(
        namespace=dns_name(meta.get("namespace"), "metadata.namespace"),
        name=dns_name(meta.get("name"), "metadata.name"),
        least=integer(spec.get("minReplicas", 1), "spec.minReplicas", lowest=0),
        most=integer(spec.get("maxReplicas"), "spec.maxReplicas", lowest=0),
        annotations=ours,
    )


def plain_bounds(seen: AutoscalerSeen) -> tuple[int, int]:
    """Return the bounds without the schedule: the kept ones, or the current ones if another writer set them."""
    kept = _kept(seen.annotations.get(PLAIN, ""))
    now = (seen.least, seen.most)
    return kept.plain if kept is not None and kept.written == now else now


def bounds_now(seen: AutoscalerSeen, schedule: Schedule, time: LocalTime) -> ScheduledBounds:
    """Return the bounds of an autoscaler at this time."""
    return scheduled_bounds(plain_bounds(seen), schedule.time_bounds, time)


def change_to(seen: AutoscalerSeen, found: ScheduledBounds, status: str) -> AutoscalerChange | None:
    """Return the change that gives an autoscaler these bounds; None if it has them, and says so."""
    wanted = (found.least, found.most)
    annotations: dict[str, str | None] = {
        PLAIN: Kept(plain_bounds(seen), wanted).text,
        STATUS: status[:MAX_STATUS],
    }
    bounds = None if wanted == (seen.least, seen.most) else wanted
    return _if_any(seen, AutoscalerChange(annotations, bounds))


def change_to_refused(seen: AutoscalerSeen, why: str) -> AutoscalerChange | None:
    """Return the change that reports an unusable schedule; the bounds stay unchanged."""
    return _if_any(seen, AutoscalerChange({STATUS: f"refused, bounds stay: {why}"[:MAX_STATUS]}))


def change_to_plain(seen: AutoscalerSeen) -> AutoscalerChange | None:
    """Return the change that restores an autoscaler's own bounds after its schedule was removed."""
    plain = plain_bounds(seen)
    bounds = None if plain == (seen.least, seen.most) else plain
    return _if_any(seen, AutoscalerChange({PLAIN: None, STATUS: None}, bounds))


def _if_any(seen: AutoscalerSeen, change: AutoscalerChange) -> AutoscalerChange | None:
    annotations = {name: text for name, text in change.annotations.items() if seen.annotations.get(name) != text}
    return AutoscalerChange(annotations, change.bounds) if annotations or change.bounds is not None else None


def _kept(text: str) -> Kept | None:
    """Parse the annotation; None if it is unusable."""
    try:
        found = read_json_object(text, what=PLAIN, max_bytes=_MAX_PLAIN_BYTES)
        plain, written = (mapping(found.get(part), part) for part in ("plain", "written"))
        return Kept(_pair(plain), _pair(written))
    except Refused:
        return None


def _pair(found: Mapping[str, Any]) -> tuple[int, int]:
    least = integer(found.get("minReplicas"), "minReplicas", lowest=0)
    most = integer(found.get("maxReplicas"), "maxReplicas", lowest=1)
    if least > most:
        raise Refused(f"minReplicas {least} is above maxReplicas {most}", reason="malformed")
    return least, most
