"""Answers of the custom and external metrics API, as an autoscaler would have got them when a recording ends."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.answers import MetricsAnswers, wall_ms
from services.central.custom_metrics.intake import FiguresIntake
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.ports.https import HttpRequest
from shared.contracts.cluster.figures import PodFigures
from shared.errors import Refused
from sublet.replay.decisions.parts import RecordedWorld

MAX_PATH = 2000
EXAMPLE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/NAMESPACE/pods/*/METRIC"


class MetricsReplay:
    """The metrics API over a recording; without a question nothing is kept."""

    def __init__(self, world: RecordedWorld, asked: Sequence[str]) -> None:
        """Raises Refused: a question is no path of the API server."""
        settings, self._clock = world.settings.metrics_api, world.clock
        mirrors = MetricsMirrors(world.objects)
        bounds = StoreBounds(settings.max_series, settings.max_samples, settings.max_object_series)
        self._store = MetricStore(settings.keep_s, mirrors.labels, bounds)
        self._intake = FiguresIntake(self._store, mirrors, world.clock)
        self._answers = MetricsAnswers(self._store, mirrors, world.clock)
        self._asked = [(path, _request(path)) for path in asked]

    def hear(self, figures: PodFigures) -> None:
        """A node says what it measured; what is too old goes."""
        if self._asked:
            self._intake.receive(figures, self._clock.monotonic())
            for _table in self._store.collect(wall_ms(self._clock)):
                continue

    def answers(self) -> list[dict[str, Any]]:
        """What each question gets now."""
        replies = [(path, self._answers.answer(request)) for path, request in self._asked]
        return [{"path": path, "status": reply.status, "body": reply.body} for path, reply in replies]


def _request(path: str) -> HttpRequest:
    if not path.startswith("/apis/") or len(path) > MAX_PATH or not path.isprintable():
        raise Refused(f"--ask {path[:60]!r}: want a path as {EXAMPLE}", reason="option")
    parts = urlsplit(path)
    return HttpRequest(parts.path, query=dict(parse_qsl(parts.query)))
