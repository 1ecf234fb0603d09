"""Answers of the metrics API: who asks is the front proxy, or gets nothing but `/healthz`."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from services.central.core.custom_metrics.discovery import MetricName, discovery_reply
from services.central.core.custom_metrics.figures import ALIASES, STALE_S
from services.central.core.custom_metrics.front_proxy import FrontProxy
from services.central.core.custom_metrics.paths import VERSIONS, Get
from services.central.core.custom_metrics.query import MetricView
from services.central.core.custom_metrics.reply import MetricsReply, reply_to
from services.central.core.custom_metrics.store import MetricStore, ObjectLabels
from services.central.ports.https import HttpRequest, Reply, Route
from shared import telemetry
from shared.build import BUILD
from shared.ports import Clock

MOST_BODY_BYTES = 4096
"""A GET has none."""
GROUP_PARTS, VERSION_PARTS = 3, 4
"""Of `/apis/GROUP`, and of `/apis/GROUP/VERSION`."""
_INFO = {"title": "Sublet", "version": BUILD.version}
OPEN_API: Mapping[str, Any] = {
    "/openapi/v2": {"swagger": "2.0", "info": _INFO, "paths": {}},
    "/openapi/v3": {"paths": {}},
}
"""Paths that the aggregator requests; without an answer it complains forever."""


class SeenObjects(Protocol):
    """What answers need to know about the cluster."""

    @property
    def proxy(self) -> FrontProxy | None:
        """The only client that is answered; None: no client is."""
        ...

    @property
    def labels(self) -> ObjectLabels:
        """Return the labels of an object, None if it does not exist."""
        ...


class MetricsAnswers:
    """Answers out of the store of this replica; the API server has checked before who may ask."""

    def __init__(self, store: MetricStore, seen: SeenObjects, clock: Clock) -> None:
        self._store, self._seen, self._clock = store, seen, clock

    @property
    def routes(self) -> list[Route]:
        """Return the routes of the front proxy, and of liveness checks."""
        return [
            Route("GET", "/healthz", MOST_BODY_BYTES, _healthz, _lost),
            Route("GET", "/{rest:.*}", MOST_BODY_BYTES, self._reply, _lost),
        ]

    async def _reply(self, request: HttpRequest) -> Reply:
        began_s = self._clock.monotonic()
        group = _group(request.path)
        proxy = self._seen.proxy
        if proxy is None or not proxy.allows(request.client):
            telemetry.METRICS_REQUESTS.labels(group, "forbidden").inc()
            return Reply(403, b'{"message":"want the client certificate of the API server\'s front proxy"}')
        if request.path in OPEN_API:
            return Reply(200, json.dumps(OPEN_API[request.path]).encode())
        reply = self.answer(request)
        telemetry.METRICS_REQUESTS.labels(group, _outcome(reply)).inc()
        body = json.dumps(reply.body, separators=(",", ":")).encode()
        telemetry.METRICS_REQUEST_SECONDS.labels(group).observe(self._clock.monotonic() - began_s)
        return Reply(reply.status, body)

    def answer(self, request: HttpRequest) -> MetricsReply:
        """The reply to a GET of the proxy."""
        if request.path.count("/") < VERSION_PARTS:
            return discovery_reply(request.path, metric_names(self._store))
        fresh_from_ms = wall_ms(self._clock) - round(STALE_S * 1000)
        get = Get(request.path, request.query.get("labelSelector", ""), request.query.get("metricLabelSelector", ""))
        return reply_to(get, MetricView(self._store.index, self._seen.labels, fresh_from_ms, ALIASES))


def metric_names(store: MetricStore) -> set[MetricName]:
    """Every metric that has series, also by the name that others have for it."""
    found = {MetricName(one.metric, one.kind, one.namespace is not None) for one in store.index.tables()}
    return found | {MetricName(name, "pods", True) for name, ours in ALIASES.items() if ("pods", ours) in
                    {(one.kind, one.metric) for one in found}}  # fmt: skip


def wall_ms(clock: Clock) -> int:
    """Now, as samples are stamped."""
    return round(clock.wall().timestamp() * 1000)


def _outcome(reply: MetricsReply) -> str:
    if reply.status != 200:
        return "not_found" if reply.status == 404 else "bad_request"
    return "empty" if reply.items == 0 else "answered"


def _group(path: str) -> str:
    """Return the group of a path as a label with a bounded number of values."""
    parts = path.split("/", GROUP_PARTS)
    return parts[2] if len(parts) >= GROUP_PARTS and parts[2] in VERSIONS else "other"


async def _healthz(_: HttpRequest) -> Reply:
    return Reply(200, b'"ok"')


def _lost(outcome: str) -> None:
    telemetry.METRICS_REQUESTS.labels("other", outcome).inc()
