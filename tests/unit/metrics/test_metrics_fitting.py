"""A sample is never longer than its readers read, whatever pods there are."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.metrics.core.sample.fitting import SUMS, fitted
from services.metrics.publisher import LEAST_BYTES, SamplePublisher
from shared.adapters.clock import SystemClock
from shared.contracts.envelope import MAX_MESSAGE_BYTES
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cgroups.kubelet_layout import CONFIG_PREFIX
from shared.core.pods.metadata import LABELS_READ
from shared.core.pods.qos import DOMAIN
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire

WHOLE = {name: 5 << 20 for name in SUMS if name.startswith("memory_") or name == "runnable_tasks"}
FIGURES = dict.fromkeys((*SUMS, "throttled_ratio"), 123456.789) | WHOLE
AMOUNTS = {"cpu_request_millis": 250, "memory_request_bytes": 1 << 20, "cpu_limit_millis": 500}


def reading(number: int, containers: int = 1, *, measured: bool = True, words: int = 0) -> PodReading:
    names = [f"{'c' * 50}{one}" for one in range(containers)]
    pod = Pod(
        uid=f"{number:x}",
        namespace="n" * 63,
        name=f"{'p' * 240}{number}",
        containers=tuple(Container(name=name, **AMOUNTS) for name in names),
        annotations={f"{DOMAIN}cpu_enhancement": "x" * words, f"{CONFIG_PREFIX}source": "file"},
        labels={LABELS_READ[0]: "BE", "app": "x" * words},
        owner=f"Job/{'o' * 250}",
    )
    return PodReading(pod=pod, containers=tuple(ContainerReading(name=n, **FIGURES) for n in names if measured))


def sample(*pods: PodReading) -> NodeSample:
    return NodeSample(node="node1", boot_id="0" * 16, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC),
                      node_reading=NodeReading(online_cpus="0-3"), pods=pods)  # fmt: skip


def test_a_sample_that_fits_is_sent_as_it_is() -> None:
    whole = sample(reading(1), reading(2))
    fit = fitted(whole, MAX_MESSAGE_BYTES)
    assert (fit.sample, fit.payload, fit.shortened, fit.left_out) == (whole, whole.encode(), 0, 0)


def test_the_pod_that_takes_the_most_room_loses_detail_and_nobody_else() -> None:
    small, large = reading(1, 3), reading(2, 2000)
    fit = fitted(sample(small, large), MAX_MESSAGE_BYTES)
    assert (fit.shortened, fit.left_out) == (1, 0)
    assert fit.sample.pods[0] == small
    shown = fit.sample.pods[1]
    assert (shown.pod.uid, shown.pod.cpu_request_millis) == (large.pod.uid, large.pod.cpu_request_millis)
    assert shown.pod.memory_request_bytes == large.pod.memory_request_bytes
    assert shown.containers[0].memory_rss_bytes == 2000 * (5 << 20)
    assert shown.containers[0].throttled_ratio is None


def test_a_figure_that_one_container_does_not_have_the_sum_does_not_have() -> None:
    large = reading(2, 2000)
    holed = (large.containers[0].model_copy(update={"cpu_usage_cores": None}), *large.containers[1:])
    (shown,) = fitted(sample(large.model_copy(update={"containers": holed})), MAX_MESSAGE_BYTES).sample.pods
    assert shown.containers[0].cpu_usage_cores is None
    assert shown.containers[0].memory_rss_bytes == 2000 * (5 << 20)


def test_containers_that_ask_for_no_memory_are_not_mixed_with_those_that_do() -> None:
    large = reading(2, 2000)
    mixed = tuple(
        c.model_copy(update={"memory_request_bytes": 0}) if n % 2 else c for n, c in enumerate(large.pod.containers)
    )
    (shown,) = fitted(
        sample(large.model_copy(update={"pod": large.pod.model_copy(update={"containers": mixed})})), MAX_MESSAGE_BYTES
    ).sample.pods
    assert [bool(c.memory_request_bytes) for c in shown.pod.containers] == [True, False]


def test_who_made_a_pod_and_its_class_are_never_left_out() -> None:
    pods = [reading(number, 20, words=500) for number in range(400)]
    fit = fitted(sample(*pods), 500_000)
    assert fit.left_out == 0
    assert all(one.pod.annotations[f"{CONFIG_PREFIX}source"] == "file" for one in fit.sample.pods)
    assert all(one.pod.labels[LABELS_READ[0]] == "BE" for one in fit.sample.pods)


def test_a_pod_says_that_annotations_of_it_are_left_out_and_no_other_does() -> None:
    pods = [reading(number, 20, words=500 * (number % 2)) for number in range(400)]
    fit = fitted(sample(*pods), 480_000)
    found = {(len(one.pod.annotations), one.annotations_left_out) for one in fit.sample.pods}
    assert found == {(2, None), (1, True)}


def test_pods_without_figures_go_first_and_are_counted() -> None:
    pods = [reading(number, measured=number % 2 == 0) for number in range(60)]
    fit = fitted(sample(*pods), LEAST_BYTES)
    assert 0 < fit.sample.pods_left_out == fit.left_out == 60 - len(fit.sample.pods)
    assert NodeSample.decode(fit.payload).pods_left_out == fit.left_out


PODS = st.lists(
    st.tuples(st.sampled_from([0, 1, 5, 40]), st.booleans(), st.sampled_from([0, 500])), max_size=60
)  # fmt: skip


@given(PODS, st.sampled_from([LEAST_BYTES, 50_000, 200_000]))
@settings(max_examples=60, deadline=None)
def test_law_whatever_pods_there_are_the_sample_is_below_its_limit(
    shapes: list[tuple[int, bool, int]], most_bytes: int
) -> None:
    pods = [
        reading(number, count, measured=measured, words=words) for number, (count, measured, words) in enumerate(shapes)
    ]
    fit = fitted(sample(*pods), most_bytes)
    assert len(fit.payload) <= most_bytes
    assert NodeSample.decode(fit.payload) == fit.sample
    assert {one.pod.uid for one in fit.sample.pods} <= {one.pod.uid for one in pods}
    assert sum(one.pod.cpu_request_millis for one in fit.sample.pods) <= sum(one.pod.cpu_request_millis for one in pods)
    assert fitted(sample(*pods), most_bytes).payload == fit.payload


class Narrow(MemoryBus):
    """A bus that refuses what is longer than it takes."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.most_bytes, self.away = most_bytes, False

    @property
    def connected(self) -> bool:
        return not self.away

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        return not self.away and len(data) <= self.most_bytes


@pytest.fixture
def narrow() -> tuple[Narrow, SamplePublisher]:
    bus = Narrow(100_000)
    return bus, SamplePublisher(Wire(bus, SystemClock(), node="node1", service="metrics"))


async def test_what_the_bus_refuses_is_a_failure_and_the_next_one_is_shorter(
    narrow: tuple[Narrow, SamplePublisher],
) -> None:
    _, publisher = narrow
    whole = sample(*(reading(number, 10) for number in range(200)))
    said = []
    for _ in range(6):
        await publisher.publish(whole)
        said.append(publisher.failure)
    assert said[0].startswith("the bus refuses a sample of ")
    assert "refuses" not in said[-1]


async def test_a_bus_that_is_away_is_a_failure_until_it_is_back(narrow: tuple[Narrow, SamplePublisher]) -> None:
    bus, publisher = narrow
    bus.away = True
    await publisher.publish(sample(reading(1)))
    assert publisher.failure == "the bus is away: the sample is not published"
    bus.away = False
    await publisher.publish(sample(reading(1)))
    assert publisher.failure == ""
