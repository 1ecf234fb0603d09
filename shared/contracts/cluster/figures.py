"""PodFigures: a node's series for custom metrics and recommendations, a column for each series."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from shared.contracts.envelope import Amount, Count, Message, MessagePart
from shared.contracts.ids import ObjectName, PodUid

MAX_FIGURES_BYTES = 240 << 10
"""Of one message: 250 pods of two containers take some 150 KB. The hub takes no larger message of a node."""
FIGURES_PERIOD_S = 15.0
MAX_PODS = 512
MAX_CONTAINERS = 2048
MAX_PARTS = 256
"""Most NUMA nodes and pools of a node."""
MAX_SERIES = 64
"""Most series of one kind of object."""
MAX_LABELS = 16

LABEL_CHARACTERS, LABEL_PATTERN = 63, r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
SeriesName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_./]{0,315}[A-Za-z0-9])?$")]
LabelValue = Annotated[str, StringConstraints(max_length=LABEL_CHARACTERS, pattern=LABEL_PATTERN)]
"""As the API server takes a label's value."""
FigureValue = Annotated[int, Field(ge=0, le=1 << 62)] | Amount
Columns = Annotated[dict[SeriesName, tuple[FigureValue | None, ...]], Field(max_length=MAX_SERIES)]
"""Values by series, in the order of the rows; None: not known of that row."""
NODE_NAME, QOS_LEVEL, POOL, NUMA, CONTAINER = "node_name", "qos_level", "pool", "numa", "container"
"""Labels of our own, beside those of the pods that the node's settings choose."""


class FigureRow(NamedTuple):
    """All figures of one object under one set of labels."""

    resource: Literal["nodes", "pods"]
    namespace: str
    """"" of a node."""
    name: str
    labels: Mapping[str, str]
    figures: Mapping[str, float]
    """Value by series; what is not known is left out."""


class FiguredParts(MessagePart):
    """Parts of the node: its NUMA nodes, or its pools."""

    names: Annotated[tuple[LabelValue, ...], Field(max_length=MAX_PARTS)] = ()
    series: Columns = {}

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        _check(len(self.names), self.series)
        return self


class FiguredPods(MessagePart):
    """Pods with their labels and figures."""

    uids: Annotated[tuple[PodUid, ...], Field(max_length=MAX_PODS)] = ()
    namespaces: tuple[ObjectName, ...] = ()
    names: tuple[ObjectName, ...] = ()
    labels: Annotated[dict[LabelKey, tuple[LabelValue | None, ...]], Field(max_length=MAX_LABELS)] = {}
    """`qos_level`, `pool` and those that the settings choose; None: the pod has no such label."""
    series: Columns = {}

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        _check(len(self.uids), {"namespaces": self.namespaces, "names": self.names, **self.labels, **self.series})
        return self


class FiguredContainers(MessagePart):
    """Containers, each by the place of its pod in the row of pods."""

    pods: Annotated[tuple[Count, ...], Field(max_length=MAX_CONTAINERS)] = ()
    names: tuple[LabelValue, ...] = ()
    series: Columns = {}

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        _check(len(self.pods), {"names": self.names, **self.series})
        return self


def _check(rows: int, columns: Mapping[str, Sequence[object]]) -> None:
    wrong = next((name for name, column in columns.items() if len(column) != rows), None)
    if wrong is not None:
        raise ValueError(f"column {wrong!r} has {len(columns[wrong])} rows, want {rows}")


class PodFigures(Message):
    """Figures of the node, its parts, its pods and their containers, at one moment. CPU in cores, memory in bytes."""

    kind: ClassVar[str] = "figures"

    measured_at: AwareDatetime
    """When the sample behind them was made, by the node's clock."""
    period_s: Amount
    """The next ones come after so many seconds."""
    node_series: Annotated[dict[SeriesName, FigureValue], Field(max_length=MAX_SERIES)] = {}
    numas: FiguredParts = FiguredParts()
    pools: FiguredParts = FiguredParts()
    pods: FiguredPods = FiguredPods()
    containers: FiguredContainers = FiguredContainers()
    pods_left_out: Count = 0
    """Pods of the node that are not in it, because the message would be longer than its readers read."""

    @model_validator(mode="after")
    def _containers_of_pods(self) -> Self:
        if any(place >= len(self.pods.uids) for place in self.containers.pods):
            raise ValueError(f"a container of pod {max(self.containers.pods)}, there are {len(self.pods.uids)}")
        return self

    def rows(self) -> Iterator[FigureRow]:
        """Every object with its labels and figures, one after the other; `node_name` is a label of all."""
        here = {NODE_NAME: self.node}
        yield FigureRow("nodes", "", self.node, here, self.node_series)
        for label, parts in ((NUMA, self.numas), (POOL, self.pools)):
            for place, name in enumerate(parts.names):
                yield FigureRow("nodes", "", self.node, here | {label: name}, _figures(parts.series, place))
        pods, labels = self.pods, []
        for place, name in enumerate(pods.names):
            own = {key: value for key, column in pods.labels.items() if (value := column[place]) is not None}
            labels.append(here | own)
            figures = _figures(pods.series, place)
            yield FigureRow("pods", pods.namespaces[place], name, labels[place], figures)
        for place, (pod, name) in enumerate(zip(self.containers.pods, self.containers.names, strict=True)):
            figures = _figures(self.containers.series, place)
            yield FigureRow("pods", pods.namespaces[pod], pods.names[pod], labels[pod] | {CONTAINER: name}, figures)


def _figures(series: Mapping[str, Sequence[float | None]], place: int) -> dict[str, float]:
    return {name: value for name, column in series.items() if (value := column[place]) is not None}
