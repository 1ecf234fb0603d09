"""Eviction events as Events of Kubernetes, for `kubectl get events`: one more receiver of the bridge.

Reasons and texts are the tutorial's (notes/katalyst-eviction-central.md section 2.7). An Event is named after the
CloudEvent that it tells, so that one delivered twice, by this bridge or by another, is still one Event.
"""

import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from shared.adapters.kube_client import Kube, KubeError
from shared.contracts.cloudevents import read_event
from shared.contracts.eviction import EvictionEvent, Phase
from shared.errors import Refused, Unavailable
from shared.ports import Clock
from sublet.bridge.bridge import Post
from sublet.bridge.request import Answer

CONTROLLER = "sublet.io/evictor"
ACTION = "Evicting"
MANAGER = "sublet-events"
OLDEST = timedelta(hours=1)
"""The API server keeps Events for an hour by default: an older one would be news that is none."""
TAKEN, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, EXISTS, MALFORMED = 201, 401, 403, 404, 409, 422
_MAX_NAME, _MAX_NOTE = 253, 1024
_REASONS: dict[Phase, tuple[str, str]] = {
    "created": ("Normal", "EvictCreated"),
    "succeeded": ("Normal", "EvictSucceeded"),
    "failed": ("Warning", "EvictFailed"),
    "refused": ("Warning", "EvictRefused"),
}
"""Type and reason by phase. What was only intended, or cancelled before anything was done, is no news for a pod."""


def event_document(event: EvictionEvent) -> dict[str, Any] | None:
    """The Event that tells of a step; None for a step that is not told, and for a rehearsal."""
    if event.phase not in _REASONS or event.mode != "enforce":
        return None
    kind, reason = _REASONS[event.phase]
    mark = hashlib.sha256(event.event_id.encode()).hexdigest()[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{event.pod[: _MAX_NAME - len(mark) - 1]}.{mark}", "namespace": event.namespace},
        "eventTime": f"{event.sent_at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "type": kind,
        "reason": reason,
        "action": ACTION,
        "note": event.message[:_MAX_NOTE],
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": event.namespace,
            "name": event.pod,
            "uid": event.pod_uid,
        },
        "related": {"apiVersion": "v1", "kind": "Node", "name": event.node},
        "reportingController": CONTROLLER,
        "reportingInstance": event.node,
    }


@contextlib.asynccontextmanager
async def posting_events(kube: Kube, clock: Clock) -> AsyncIterator[Post]:
    """A `Post` to the API server."""

    async def post(body: bytes, headers: Mapping[str, str]) -> Answer:
        try:
            event = read_event(headers, body)
        except Refused:
            return Answer(MALFORMED)
        document = event_document(event)
        if document is None or too_old(event, clock.wall()):
            return Answer(TAKEN)
        path = f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
        try:
            await kube.create(path, document, manager=MANAGER)
        except KubeError as error:
            return _answer(error)
        except Unavailable:
            return Answer(0)
        return Answer(TAKEN)

    try:
        yield post
    finally:
        await kube.close()


def _answer(error: KubeError) -> Answer:
    """There already, or no namespace to put it in: done. Rights that are missing may yet be granted: again."""
    leaving = any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)
    if error.status in (EXISTS, NOT_FOUND) or leaving:
        return Answer(TAKEN)
    return Answer(0 if error.status in (UNAUTHORIZED, FORBIDDEN) else error.status)


def too_old(event: EvictionEvent, now: datetime) -> bool:
    """Whether the API server would have forgotten it by now."""
    return now - event.sent_at > OLDEST
