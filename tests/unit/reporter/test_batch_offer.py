"""Koordinator's batch resources as the reporter offers them: what they are made of, over time, and on the Node."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample
from hypothesis import given
from hypothesis import strategies as st
from kube_api import Api, FakeKube

from services.reporter.batch_node_offer import BatchNodeOffer
from services.reporter.core.batch_demand import ColocationStrategy, batch_offer, system_used
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.node_capacity import (
    RAW_ALLOCATABLE,
    RESERVATION,
    NodeCapacity,
    machine_capacity,
    node_capacity,
)
from services.reporter.core.node_object import cnr
from services.reporter.fields import batch as field
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.adapters.kube.node import KubeNode
from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY, FIRST_BATCH_CPU, FIRST_BATCH_MEMORY, Container, Pod
from shared.contracts.sample import ApplicationReading, ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cpus.normalization import NORMALIZATION_RATIO
from sublet.views.answer_shapes import well_shaped
from sublet.views.explain.batch import batch_lines

GIB = 1 << 30
TEN = NodeCapacity(10_000, 10 * GIB)
NOTHING = Offered(0, 0)


def reading(name: str, used_millis: int | None = None, used_bytes: int | None = None, **fields: Any) -> PodReading:
    """A pod that asks for 2 CPUs and 2 GiB, and uses so much."""
    containers = (Container(name="c", cpu_request_millis=2000, memory_request_bytes=2 * GIB),)
    pod = Pod(**{"uid": name.encode().hex(), "name": name, "containers": containers} | fields)
    cores = None if used_millis is None else used_millis / 1000
    used = ContainerReading(name="c", cpu_usage_cores=cores, memory_working_set_bytes=used_bytes)
    return PodReading(pod=pod, containers=(used,))


@pytest.fixture
def ten(sample: NewSample) -> Any:
    """A sample of a node of ten CPUs and 10 GiB, that uses 3 CPUs and 3 GiB."""

    def make(*pods: PodReading, **over: Any) -> NodeSample:
        node = {"cpu_usage_cores": 3.0, "memory_total_bytes": 10 * GIB, "memory_available_bytes": 7 * GIB} | over
        return sample(node_reading=NodeReading(online_cpus="0-9", **node), pods=pods)

    return make


@pytest.mark.parametrize(
    ("pods", "cpu_millis"),
    [
        pytest.param([], 6000 - 3000, id="all of it is the system's"),
        pytest.param([reading("web", 1000)], 6000 - 2000 - 1000, id="a tenant by use"),
        pytest.param([reading("web")], 6000 - 3000 - 2000, id="a tenant without figure by request"),
        pytest.param([reading("job", 1000, qos="reclaimed_cores")], 6000 - 2000, id="use of batch is not taken off"),
        pytest.param([reading("job", 1000, qos="reclaimed_cores", priority=7000)], 6000 - 2000 - 1000,
                     id="best effort by class, above batch by priority"),
        pytest.param([reading("web", 1000, priority=5500)], 6000 - 2000 - 1000, id="beside tenants whatever priority"),
        pytest.param([reading("db", 1000, qos="dedicated_cores")], 6000 - 2000 - 2000, id="own CPUs by request"),
        pytest.param([reading("web", 1000, phase="Succeeded")], 6000 - 2000, id="a finished pod"),
        pytest.param([reading("web", 4000)], 6000 - 4000, id="the system never uses less than nothing"),
    ],
)  # fmt: skip
def test_what_a_node_lends(ten: Any, pods: list[PodReading], cpu_millis: int) -> None:
    found = batch_offer(ten(*pods), TEN, ColocationStrategy())
    assert found is not None
    assert found.cpu_millis == cpu_millis


@pytest.mark.parametrize(
    ("pods", "memory_bytes"),
    [
        pytest.param([], 13 - 6, id="all of it is the system's"),
        pytest.param([reading("web", None, GIB)], 13 - 4 - 2, id="a tenant by use"),
        pytest.param([reading("web")], 13 - 6 - 4, id="a tenant without figure by request"),
        pytest.param([reading("job", None, GIB, qos="reclaimed_cores")], 13 - 4, id="use of batch is not taken off"),
        pytest.param([reading("web", None, 4 * GIB)], 13 - 8, id="the system never uses less than nothing"),
        pytest.param([reading(f"web{n}", None, 2 * GIB) for n in range(4)], 0, id="nothing is left"),
    ],
)
def test_what_memory_a_node_lends(ten: Any, pods: list[PodReading], memory_bytes: int) -> None:
    """In halves of a GiB: 13 of 20 may be lent, 6 are in use."""
    found = batch_offer(ten(*pods), TEN, ColocationStrategy())
    assert found is not None
    assert found.memory_bytes == memory_bytes * GIB // 2


@pytest.mark.parametrize(
    ("percent", "offered"),
    [(None, (3000, 7 * GIB // 2)), (20, (2000, 2 * GIB)), (90, (3000, 7 * GIB // 2)), (0, (0, 0))],
)
def test_no_more_is_lent_than_the_part_of_the_node_that_may_be(
    ten: Any, percent: int | None, offered: tuple[int, int]
) -> None:
    strategy = ColocationStrategy(cpu_at_most_percent=percent, memory_at_most_percent=percent)
    found = batch_offer(ten(), TEN, strategy)
    assert found is not None
    assert (found.cpu_millis, found.memory_bytes) == offered


def test_where_pods_say_that_they_use_more_than_the_node_nothing_is_the_systems(ten: Any) -> None:
    assert system_used(ten(reading("web", 4000, 4 * GIB))) == (0, 0)
    assert system_used(ten(reading("web", 1000, GIB), reading("db"))) == (2000, 2 * GIB)


@pytest.mark.parametrize(("used_millis", "taken_millis"), [(500, 2000), (2400, 2400), (None, 2000)])
def test_where_mid_pods_are_sold_what_they_ask_for_it_is_not_lent_again(
    ten: Any, used_millis: int | None, taken_millis: int
) -> None:
    pods = reading("web", 100), reading("mid", used_millis, priority=7500)
    found = batch_offer(ten(*pods), TEN, ColocationStrategy(mid_is_sold=True))
    assert found is not None
    assert (found.cpu.pods_used, found.cpu.pods_larger) == (100 + taken_millis, 2000 + taken_millis)


@pytest.mark.parametrize(
    ("classes", "is_system"),
    [
        ({"priority": "koord-batch", "qos": "LS"}, False),
        ({"priority": "koord-free"}, False),
        ({"qos": "BE"}, False),
        ({"priority": "koord-mid", "qos": "BE"}, True),
        ({"priority": "koord-prod"}, True),
        ({"qos": "LS"}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize(("cores", "held_bytes"), [(1.0, GIB), (None, GIB), (1.0, None)])
def test_an_application_of_the_host_that_uses_batch_resources_is_not_the_systems(
    ten: Any, classes: dict[str, Any], is_system: bool, cores: float | None, held_bytes: int | None
) -> None:
    yarn = ApplicationReading(name="yarn", cpu_usage_cores=cores, memory_working_set_bytes=held_bytes, **classes)
    found = batch_offer(ten(reading("web", 1000, GIB)), TEN, ColocationStrategy())
    beside = batch_offer(
        ten(reading("web", 1000, GIB)).model_copy(update={"host_applications": (yarn,)}), TEN, ColocationStrategy()
    )
    assert found is not None
    assert beside is not None
    assert beside.cpu_millis - found.cpu_millis == (0 if is_system or cores is None else 1000)
    assert beside.memory_bytes - found.memory_bytes == (0 if is_system or held_bytes is None else GIB)


@pytest.mark.parametrize("absent", ["cpu_usage_cores", "memory_total_bytes", "memory_available_bytes"])
def test_a_figure_that_is_absent_is_not_zero(ten: Any, absent: str) -> None:
    assert batch_offer(ten(**{absent: None}), TEN, ColocationStrategy()) is None


@pytest.mark.parametrize(("ratio", "cpu_millis"), [(1.0, 3000), (1.5, 4500), (9.0, 10_000)])
def test_a_faster_cpu_lends_more_but_never_more_than_the_node_has(ten: Any, ratio: float, cpu_millis: int) -> None:
    found = batch_offer(ten(), replace(TEN, cpu_normalization_ratio=ratio), ColocationStrategy())
    assert found is not None
    assert (found.cpu_millis, found.cpu.capacity) == (cpu_millis, 10_000)


def node(annotations: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32611012Ki"}
    kept = {"cpu": "7800m", "memory": "28629700Ki"}
    return {
        "metadata": {"annotations": annotations or {}},
        "status": {"capacity": amounts, "allocatable": kept} | status,
    }


KEPT = (200, 3981312 * 1024)


@pytest.mark.parametrize(
    ("document", "reserved", "ratio"),
    [
        pytest.param(node(), KEPT, 1.0, id="what kubelet keeps"),
        pytest.param(node(allocatable=None), (0, 0), 1.0, id="no allocatable"),
        pytest.param(node({RESERVATION: '{"reservedCPUs": "0-1", "resources": {"cpu": "4"}}'}), (2000, KEPT[1]), 1.0,
                     id="a list of CPUs before an amount"),
        pytest.param(node({RESERVATION: '{"resources": {"cpu": "4", "memory": "8Gi"}}'}), (4000, 8 * GIB), 1.0,
                     id="amounts"),
        pytest.param(node({RESERVATION: '{"resources": {"cpu": "100m"}}'}), KEPT, 1.0, id="less than kubelet's"),
        pytest.param(node({NORMALIZATION_RATIO: "1.25"}), KEPT, 1.25, id="a faster CPU"),
        pytest.param(node({NORMALIZATION_RATIO: "0.5"}), KEPT, 1.0, id="a slower one"),
        pytest.param(node({RAW_ALLOCATABLE: '{"cpu": "7", "memory": "28629700Ki"}'}, allocatable={"cpu": "14"}),
                     (1000, KEPT[1]), 1.0, id="an amplified node"),
    ],
)  # fmt: skip
def test_what_a_node_keeps_back(document: dict[str, Any], reserved: tuple[int, int], ratio: float) -> None:
    found = node_capacity(document)
    assert found is not None
    assert (found.cpu_millis, found.memory_bytes, found.unread) == (8000, 32611012 * 1024, ())
    assert (found.reserved_cpu_millis, found.reserved_memory_bytes) == reserved
    assert found.cpu_normalization_ratio == ratio


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *((RESERVATION, text) for text in ("{", "[]", '{"reservedCPUs": "x"}', '{"resources": {"cpu": "-1"}}',
                                           '{"resources": {"memory": "much"}}', '{"resources": {"memory": "2Ei"}}',
                                           '{"resources": {"memory": "-1"}}', " " * 5000 + "{}")),
        *((NORMALIZATION_RATIO, text) for text in ("fast", "nan", "inf", "1e9", "")),
        *((RAW_ALLOCATABLE, text) for text in ("{}", '{"cpu": "1"}', "null")),
    ],
)  # fmt: skip
def test_an_annotation_that_cannot_be_read_counts_as_not_there_and_is_named(key: str, text: str) -> None:
    found = node_capacity(node({key: text}))
    assert found is not None
    assert [why.partition(":")[0] for why in found.unread] == [key]
    assert replace(found, unread=()) == node_capacity(node())


@pytest.mark.parametrize(
    "status", [{"capacity": None}, {"capacity": {"cpu": "8"}}, {"capacity": {"cpu": [], "memory": 1}}]
)
def test_a_node_that_does_not_say_what_it_has_offers_nothing(status: dict[str, Any]) -> None:
    assert node_capacity(node(**status)) is None


KEYS = st.sampled_from(["metadata", "status", "annotations", "capacity", "cpu", "memory", RESERVATION])
ANYTHING = st.recursive(
    st.none() | st.text() | st.integers() | st.floats(), lambda of: st.lists(of) | st.dictionaries(KEYS, of)
)


@given(ANYTHING)
def test_whatever_a_node_says_is_read(document: Any) -> None:
    node_capacity({"metadata": document, "status": document})
    node_capacity({"metadata": {"annotations": document}, "status": {"capacity": document}})


def test_a_host_has_its_cpus_and_memory(ten: Any) -> None:
    assert machine_capacity(ten().node_reading) == TEN
    assert machine_capacity(NodeReading(online_cpus="0-9")) is None


def settings(**over: Any) -> ReporterSettings:
    return ReporterSettings.model_validate({"batch": {"enabled": True} | over})


class Offer:
    """The offer of a host of ten CPUs, sample by sample."""

    def __init__(self, ten: Any, **over: Any) -> None:
        self.offer, self._ten = BatchNodeOffer(settings(**over)), ten

    def after(self, now_s: float, used_cores: float | None = 3.0, age_s: float | None = 0.0, **seen: Any) -> int | None:
        sample = self._ten(cpu_usage_cores=used_cores)
        known = {"allocation": None, "sample": sample, "sample_age_s": age_s, "node": None, "in_a_cluster": False}
        found = self.offer.smoothed(ColocationInput(**known | seen), NOTHING, now_s)
        return None if found is None else found.cpu_millis


def test_nothing_is_offered_unless_the_settings_say_so(ten: Any) -> None:
    assert Offer(ten, enabled=False).after(0) is None


def test_a_fall_is_offered_at_once_and_a_rise_by_and_by(ten: Any) -> None:
    offer = Offer(ten)
    assert [offer.after(0), offer.after(1, 5.0)] == [3000, 1000]
    rising = [offer.after(now_s, 3.0) or 0 for now_s in range(2, 30)]
    assert rising[0] == 1000
    assert rising == sorted(rising)
    assert rising[-1] == 3000
    assert len(set(rising)) > 2


def test_time_alone_ends_an_offer_and_the_next_one_begins_as_it_is(ten: Any) -> None:
    offer = Offer(ten)
    assert offer.after(0, 5.0) == 1000
    assert offer.after(50, 5.5, age_s=50) == 1000  # too old to follow, too young to end
    assert offer.after(61, 3.0, age_s=60.5) is None
    assert offer.offer.state() is None
    assert offer.after(62, 3.0) == 3000
    assert offer.after(63, sample=None, age_s=None) is None


def test_a_sample_without_the_nodes_use_changes_nothing(ten: Any) -> None:
    offer = Offer(ten)
    assert [offer.after(0), offer.after(1, None)] == [3000, 3000]


def test_samples_that_say_too_little_for_long_end_an_offer_as_none_do(ten: Any) -> None:
    offer = Offer(ten)
    assert [offer.after(0), offer.after(60, None), offer.after(61, None), offer.after(62)] == [3000, 3000, None, 3000]


HALF_GIB = GIB // 2


@pytest.mark.parametrize("status", ["floor", "applied"])
@pytest.mark.parametrize(
    ("given", "withheld", "offered"),
    [
        pytest.param(None, Offered(500, HALF_GIB), Offered(3000, 7 * HALF_GIB), id="by the formula alone"),
        pytest.param(Offered(2000, GIB), NOTHING, Offered(2000, GIB), id="less is given"),
        pytest.param(Offered(9000, 9 * GIB), NOTHING, Offered(3000, 7 * HALF_GIB), id="more is given"),
        pytest.param(Offered(2000, GIB), Offered(500, HALF_GIB), Offered(1500, HALF_GIB), id="some of it was sold"),
        pytest.param(Offered(2000, GIB), Offered(2001, GIB + 1), NOTHING, id="more than that was sold"),
    ],
)
def test_no_more_is_offered_than_reclaimed_pods_are_given(
    ten: Any, allocation: NewAllocation, status: str, given: Offered | None, withheld: Offered, offered: Offered
) -> None:
    amounts = {} if given is None else asdict(given)
    applied = allocation(status=status, **{f"reclaimed_{name}": amount for name, amount in amounts.items()})
    seen = ColocationInput(applied if given else None, ten(), 0.0, None, in_a_cluster=False)
    assert BatchNodeOffer(settings()).smoothed(seen, withheld, 0.0) == offered


def test_in_a_cluster_nothing_is_offered_before_the_node_was_read(ten: Any) -> None:
    offer = Offer(ten)
    assert offer.after(0, in_a_cluster=True) is None
    assert offer.after(1, in_a_cluster=True, node=node()) == 4800 - 3000


def test_other_settings_hold_from_the_next_sample_on(ten: Any) -> None:
    offer = Offer(ten)
    offer.after(0)
    offer.offer.reconfigure(settings(cpu_reclaim_percent=50))
    assert offer.after(1) == 2000
    at_once = settings().model_copy(update={"rise_window_s": 2.0, "rise_sample_s": 2.0})
    offer.offer.reconfigure(at_once)
    assert offer.after(3) == 3000
    offer.offer.reconfigure(settings(enabled=False))
    assert offer.after(4) is None


def test_an_offer_carries_its_terms(ten: Any) -> None:
    offer = Offer(ten)
    offer.after(0)
    state = offer.offer.state()
    assert state is not None
    cpu = state["cpu"]
    assert cpu["amount"] == cpu["capacity"] - cpu["margin"] - cpu["system"] - cpu["pods_used"] == state["cpu_millis"]
    assert well_shaped("reporter", {"batch": state}) == {"batch": state}
    assert "capacity 10.00 - margin 4.00 - system 3.00" in next(batch_lines(state))


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [
        pytest.param(1000, 950, False, id="a small fall waits"),
        pytest.param(1000, 949, True, id="a larger one does not"),
        pytest.param(1000, 9000, False, id="a rise waits"),
        pytest.param(1000, 0, True, id="nothing left"),
        pytest.param(1000, None, True, id="gone"),
        pytest.param(None, 1000, True, id="come"),
        pytest.param(None, None, False, id="never there"),
    ],
)
def test_what_is_written_at_once(now: Any, before: int | None, after: int | None, urgent: bool) -> None:
    rules = field.BatchFieldSettings()

    def written(millis: int | None) -> Any:
        return field.fragment(FieldView(now, batch=None if millis is None else Offered(millis, GIB)), rules)

    assert field.urgent(written(before), written(after), rules) == urgent


async def test_the_example_of_the_first_release_stands_on_the_node_literally(ten: Any, now: Any) -> None:
    """8 cores, 60 % and 65 %, 59 milli-cores and 392461072 bytes used by tenants, the system below its reserve."""
    web = reading("web", 59, 392_461_072)
    used = {"cpu_usage_cores": 0.159, "memory_total_bytes": 1 << 40, "memory_available_bytes": (1 << 40) - GIB}
    seen = ColocationInput(None, ten(web, **used), 0.0, node(), in_a_cluster=True)
    offered = BatchNodeOffer(settings()).smoothed(seen, NOTHING, 0.0)
    assert offered == Offered(4541, 17_236_565_027)
    fragment = field.fragment(FieldView(now, batch=offered), field.BatchFieldSettings())
    assert fragment is not None
    api = Api()
    api.put("/api/v1/nodes/n1", {"spec": {}, **node()})
    await KubeNode(FakeKube(api), "n1", dict).write(cnr("n1", {"batch": fragment}))
    status = api.objects["/api/v1/nodes/n1"]["status"]
    for part in ("capacity", "allocatable"):
        assert {status[part][name] for name in (BATCH_CPU, FIRST_BATCH_CPU)} == {"4541"}
        assert {status[part][name] for name in (BATCH_MEMORY, FIRST_BATCH_MEMORY)} == {"17236565027"}
