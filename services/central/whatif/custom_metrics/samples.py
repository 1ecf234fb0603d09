"""The kinds `metric_samples` and `metric_store`, and samples and objects as the kinds of this area take them."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from services.central.core.custom_metrics.exposition import read_samples
from services.central.core.custom_metrics.series import MeteredObject, MetricSample, SeriesKey
from services.central.core.custom_metrics.store import EXPIRE_S, MetricStore, ObjectLabels
from shared.whatif.decisions import Answer, Question, decision

AREA = "custom_metrics"
TimeMs = Annotated[int, Field(ge=-62_135_596_800_000, lt=253_402_300_800_000)]
"""Years 1 to 9999, which a timestamp can express."""
SpanS = Annotated[float, Field(ge=0, le=1e9)]


class SampleGiven(Question):
    """One sample; without object it is an external metric's."""

    metric: str
    namespace: str | None = None
    object: str | None = None
    object_name: str | None = None
    labels: dict[str, str] = {}
    timestamp_ms: TimeMs
    value: float

    @property
    def sample(self) -> MetricSample:
        """As the store takes it."""
        about = MeteredObject(self.object, self.namespace, self.object_name)
        key = SeriesKey(self.metric, about, tuple(sorted(self.labels.items())))
        return MetricSample(key, self.timestamp_ms, self.value)


class ObjectGiven(Question):
    """An object of the cluster."""

    object: str
    namespace: str | None = None
    name: str


class LabelledObject(ObjectGiven):
    """An object of the cluster with its labels."""

    labels: dict[str, str] = {}


def labels_by_object(objects: Iterable[ObjectGiven] | None) -> ObjectLabels | None:
    """Return a function from an object to its labels, None if it does not exist; None if objects are not checked."""
    if objects is None:
        return None
    known: Mapping[MeteredObject, Mapping[str, str]] = {
        MeteredObject(one.object, one.namespace, one.name): one.labels if isinstance(one, LabelledObject) else {}
        for one in objects
    }
    return known.get


class SamplesQuestion(Question):
    """The text of a scrape, and when it is read."""

    text: str
    now_ms: int
    expire_s: SpanS = EXPIRE_S


class SampleFound(Answer):
    """One sample of the scrape."""

    metric: str
    namespace: str | None
    object: str | None
    object_name: str | None
    labels: dict[str, str]
    timestamp_ms: int
    value: float


class SamplesAnswer(Answer):
    """The samples in order, and how many lines were dropped for which reason."""

    samples: list[SampleFound]
    dropped: dict[str, int]


@decision("metric_samples", area=AREA, asks=SamplesQuestion, answers=SamplesAnswer)
def metric_samples(question: SamplesQuestion) -> SamplesAnswer:
    """Which samples one scrape gives."""
    found, dropped = read_samples(question.text, question.now_ms, question.expire_s)
    samples = [
        SampleFound(
            metric=key.metric, namespace=key.about.namespace, object=key.about.kind, object_name=key.about.name,
            labels=dict(key.labels), timestamp_ms=at_ms, value=value,
        )
        for key, at_ms, value in found
    ]  # fmt: skip
    return SamplesAnswer(samples=samples, dropped=dict(dropped))


class StoreStep(Question):
    """One step: samples are added, then old ones are removed."""

    now_ms: int
    insert: list[SampleGiven] = []
    gc: bool = False


class StoreQuestion(Question):
    """How long samples are kept, the objects there are, and what happens."""

    expire_s: SpanS = EXPIRE_S
    objects: list[ObjectGiven] | None = None
    steps: list[StoreStep]


class StoreStepAnswer(Answer):
    """What was stored and dropped, and the content of the store after the step."""

    added: int
    dropped: dict[str, int]
    series: int
    samples: int


class StoreAnswer(Answer):
    """The steps in order."""

    steps: list[StoreStepAnswer]


@decision("metric_store", area=AREA, asks=StoreQuestion, answers=StoreAnswer)
def metric_store(question: StoreQuestion) -> StoreAnswer:
    """Which samples the metrics API keeps, over time."""
    store = MetricStore(question.expire_s, labels_by_object(question.objects))
    steps = []
    for step in question.steps:
        added, dropped = store.insert((given.sample for given in step.insert), step.now_ms)
        if step.gc:
            for _table in store.collect(step.now_ms):
                pass
        steps.append(StoreStepAnswer(added=added, dropped=dict(dropped), series=store.series, samples=store.samples))
    return StoreAnswer(steps=steps)
