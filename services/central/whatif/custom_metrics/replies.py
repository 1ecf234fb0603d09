"""The kinds `metrics_reply` and `metrics_discovery`: what the aggregated API answers to a GET."""

from typing import Any

from pydantic import Field

from services.central.core.custom_metrics.discovery import MetricName, discovery_reply
from services.central.core.custom_metrics.paths import Get
from services.central.core.custom_metrics.reply import reply_to
from services.central.whatif.custom_metrics.questions import view_of
from services.central.whatif.custom_metrics.samples import AREA, LabelledObject, SampleGiven
from shared.whatif.decisions import Answer, Question, decision


class SelectorsGiven(Question):
    """The parameters of a GET."""

    label_selector: str = Field("", alias="labelSelector")
    metric_label_selector: str = Field("", alias="metricLabelSelector")


class ReplyQuestion(Question):
    """A GET, and the samples and objects there are."""

    path: str
    query: SelectorsGiven = SelectorsGiven()
    samples: list[SampleGiven]
    objects: list[LabelledObject] | None = None


class MetricsReplyAnswer(Answer):
    """Status and body as they are sent."""

    status: int
    body: dict[str, Any]


@decision("metrics_reply", area=AREA, asks=ReplyQuestion, answers=MetricsReplyAnswer)
def metrics_reply(question: ReplyQuestion) -> MetricsReplyAnswer:
    """Return what the aggregated API answers to a question about a metric."""
    get = Get(question.path, question.query.label_selector, question.query.metric_label_selector)
    reply = reply_to(get, view_of(question.samples, question.objects))
    return MetricsReplyAnswer(status=reply.status, body=reply.body)


class NameGiven(Question):
    """An existing metric; without object it is an external one."""

    metric: str
    object: str | None = None
    namespaced: bool = False


class DiscoveryQuestion(Question):
    """A path and the metrics there are."""

    path: str
    metrics: list[NameGiven]


@decision("metrics_discovery", area=AREA, asks=DiscoveryQuestion, answers=MetricsReplyAnswer)
def metrics_discovery(question: DiscoveryQuestion) -> MetricsReplyAnswer:
    """Return what the API server reads to list the metrics."""
    reply = discovery_reply(
        question.path, [MetricName(one.metric, one.object, one.namespaced) for one in question.metrics]
    )
    return MetricsReplyAnswer(status=reply.status, body=reply.body)
