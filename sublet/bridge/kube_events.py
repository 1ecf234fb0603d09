"""Eviction events as Events of Kubernetes, for `kubectl get events`: one more receiver of the bridge.

Reasons and texts are the tutorial's (docs/facts/katalyst-eviction.md#events-of-an-eviction). An Event is named after
its CloudEvent and its node. So an event that is delivered twice, by this bridge or by another, is still one Event, and
no event that another node makes up can take its place.
"""

import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import Phase
from shared.core.evictions.intents import TokenBucket
from shared.errors import Unavailable
from shared.ports import Clock
from sublet.bridge.bridge import Post
from sublet.bridge.request import HttpAnswer
from sublet.output import printable

CONTROLLER = "sublet.io/evictor"
ACTION = "Evicting"
MANAGER = "sublet-events"
OLDEST = timedelta(hours=1)
"""The API server keeps Events for an hour by default: an older one would be news that is none."""
TAKEN, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, EXISTS, CROWDED = 201, 401, 403, 404, 409, 422
FORBIDDEN_TRIES = 5
"""A namespace may forbid Events (a quota, a webhook); a right that is missing for a moment is granted by then."""
NODE_BURST, NODE_EVENTS_PER_S = 1000.0, 2.0
"""Limits for one node: further events stay in the stream alone, and do not fill the API server."""
_MAX_NAME, _MAX_NOTE, _MAX_INSTANCE = 253, 1024, 128
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
    mark = hashlib.sha256(f"{event.node}/{event.event_id}".encode()).hexdigest()[:16]
    name = event.pod[: _MAX_NAME - len(mark) - 1].rstrip("-.")
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{mark}", "namespace": event.namespace},
        "eventTime": f"{event.sent_at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "type": kind,
        "reason": reason,
        "action": ACTION,
        "note": printable(event.message)[:_MAX_NOTE],
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": event.namespace,
            "name": event.pod,
            "uid": event.pod_uid,
        },
        "related": {"apiVersion": "v1", "kind": "Node", "name": event.node},
        "reportingController": CONTROLLER,
        "reportingInstance": event.node[:_MAX_INSTANCE],
    }


@contextlib.asynccontextmanager
async def posting_events(kube: Kube, clock: Clock) -> AsyncIterator[Post]:
    """A `Post` to the API server."""

    buckets: dict[str, TokenBucket] = {}

    async def post(event: EvictionEvent, _trace: Mapping[str, str]) -> HttpAnswer:
        document = event_document(event)
        # Done with, not put aside: what is not told is no failure.
        if document is None or too_old(event, clock.wall()):
            return HttpAnswer(TAKEN)
        now_s = clock.monotonic()
        bucket = buckets.get(event.node, TokenBucket(NODE_BURST, now_s))
        left = bucket.spend(now_s, capacity=NODE_BURST, per_s=NODE_EVENTS_PER_S)
        if left is None:
            return HttpAnswer(CROWDED)
        # Only a token that was there is spent: what is turned away does not push the next one back.
        buckets[event.node] = left
        path = f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
        try:
            await kube.create(path, document, manager=MANAGER)
        except KubeError as error:
            return _answer(error)
        except Unavailable:
            return HttpAnswer(0)
        return HttpAnswer(TAKEN)

    try:
        yield post
    finally:
        await kube.close()


def _answer(error: KubeError) -> HttpAnswer:
    """There already, or no namespace to put it in: done.

    401 is about ourselves, not about the event: tried again for as long as the event is news.
    """
    leaving = any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)
    # The name follows from the event and its node, so what exists is this Event.
    if error.status in (EXISTS, NOT_FOUND) or leaving:
        return HttpAnswer(TAKEN)
    if error.status == FORBIDDEN:
        return HttpAnswer(FORBIDDEN, tries=FORBIDDEN_TRIES)
    return HttpAnswer(0 if error.status == UNAUTHORIZED else error.status)


def too_old(event: EvictionEvent, now: datetime) -> bool:
    """Whether the API server would have forgotten it by now."""
    return now - event.sent_at > OLDEST
