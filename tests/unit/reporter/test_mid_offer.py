"""Koordinator's mid resources as the reporter offers them: what prod pods lend, sold once, over time, on the Node."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st
from kube_api import Api, FakeKube
from mid_node import GIB, MID, TEN, NewNode, near, node_of_ten, reading

from services.reporter.core.batch_demand import ColocationStrategy, batch_offer
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.mid.amount import MidOffer, MidStrategy, MidTerms, mid_amount, mid_offer, sold_and_unused
from services.reporter.core.mid.reclaimable import (
    ProdReclaimable,
)
from services.reporter.core.node_capacity import NodeCapacity
from services.reporter.core.node_object import cnr
from services.reporter.fields import mid as field
from services.reporter.mid_node_offer import MidNodeOffer
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.adapters.kube.node import KubeNode
from shared.contracts.pod import MID_CPU, MID_MEMORY
from shared.contracts.sample import NodeReading, NodeSample, PodReading
from sublet.views.answer_shapes import well_shaped
from sublet.views.explain.mid import mid_lines


@pytest.fixture
def ten_cpus(sample: NewSample) -> NewNode:
    return node_of_ten(sample)


TERMS = MidTerms(capacity=10_000, prod_reclaimable=3000, unallocated=2000, unused=6000, at_most=10_000)


@pytest.mark.parametrize(
    ("terms", "strategy", "millis"),
    [
        pytest.param({}, MidStrategy(), 3000, id="what prod pods lend"),
        pytest.param({"unused": 2500}, MidStrategy(), 2500, id="never more than is unused"),
        pytest.param({"at_most": 2000}, MidStrategy(), 2000, id="nor than the bound"),
        pytest.param({}, MidStrategy(unallocated_percent=50), 4000, id="a part of what nobody asked for"),
        pytest.param({"unused": 3500}, MidStrategy(unallocated_percent=50), 3500, id="unused bounds the sum"),
        pytest.param({}, MidStrategy("static", static_cpu_percent=20), 2000, id="a fixed part"),
        pytest.param({"unused": 100}, MidStrategy("static", static_cpu_percent=20), 100, id="as far as it is unused"),
    ],
)
def test_an_amount_is_the_smallest_of_its_bounds(terms: dict[str, int], strategy: MidStrategy, millis: int) -> None:
    assert mid_amount(replace(TERMS, **terms), strategy, strategy.static_cpu_percent) == millis


def offered(sample: NodeSample, capacity: NodeCapacity = TEN, **strategy: Any) -> MidOffer:
    """A node of which prod pods lend everything."""
    everything = ProdReclaimable(capacity.cpu_millis, capacity.memory_bytes)
    found = mid_offer(sample, capacity, MidStrategy(**strategy), everything)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("pods", "millis"),
    [
        pytest.param([], 9000, id="less the system"),
        pytest.param([reading("web", 1000)], 8000, id="less what tenants use"),
        pytest.param([reading("web")], 5000, id="a tenant without a figure by request"),
        pytest.param([reading("db", 1000, qos="dedicated_cores")], 5000, id="CPUs of its own by request"),
        pytest.param([reading("job", 1000, qos="reclaimed_cores")], 5000, id="what reclaimed pods were sold"),
        pytest.param([reading("job", 5000, qos="reclaimed_cores")], 4000, id="or use beyond that"),
        pytest.param([reading("mid", 1000, priority=MID)], 9000, id="mid pods are what it is for"),
        pytest.param([reading("web", 1000, phase="Failed")], 9000, id="a pod that has ended"),
    ],
)
def test_what_is_unused_is_the_most_that_mid_pods_get(ten_cpus: NewNode, pods: list[PodReading], millis: int) -> None:
    assert offered(ten_cpus(*pods)).cpu_millis == millis


def test_memory_of_a_dedicated_pod_is_lent_as_far_as_it_is_not_used(ten_cpus: NewNode) -> None:
    assert offered(ten_cpus(reading("db", 1000, qos="dedicated_cores"))).memory_bytes == 8 * GIB


@pytest.mark.parametrize(
    ("pods", "thousandths"),
    [
        pytest.param([], 9000, id="less the system"),
        pytest.param([reading("web", 1000)], 5000, id="less what a tenant asked for"),
        pytest.param([reading("mid", 1000, priority=MID)], 9000, id="mid pods are what it is for"),
        pytest.param([reading("a", 0), reading("b", 0), reading("c", 0)], 0, id="more was asked for than there is"),
    ],
)
def test_a_part_of_what_nobody_asked_for_is_offered(
    ten_cpus: NewNode, pods: list[PodReading], thousandths: int
) -> None:
    found = mid_offer(ten_cpus(*pods), TEN, MidStrategy(unallocated_percent=50), ProdReclaimable())
    assert found is not None
    assert (found.cpu_millis, found.memory_bytes) == (thousandths // 2, thousandths * GIB // 2000)


def test_what_mid_pods_were_sold_and_do_not_use_is_theirs_each_by_itself(ten_cpus: NewNode) -> None:
    mids = [reading("a", 5000, priority=MID), reading("b", 1000, priority=MID), reading("c", priority=MID)]
    others = [reading("d", 0, priority=MID, phase="Succeeded"), reading("web", 0)]
    assert sold_and_unused(ten_cpus(*mids, *others)) == Offered(7000, 7 * GIB)


def test_what_kubelet_keeps_is_not_offered(ten_cpus: NewNode) -> None:
    kept = replace(TEN, reserved_cpu_millis=2500, reserved_memory_bytes=3 * GIB)
    found = offered(ten_cpus(), kept)
    assert (found.cpu_millis, found.memory_bytes) == (7500, 7 * GIB)


@pytest.mark.parametrize("absent", ["cpu_usage_cores", "memory_total_bytes", "memory_available_bytes"])
def test_a_figure_that_is_absent_is_not_zero(ten_cpus: NewNode, absent: str) -> None:
    assert mid_offer(ten_cpus(**{absent: None}), TEN, MidStrategy(), ProdReclaimable(1, 1)) is None


KINDS = st.sampled_from([{}, {"priority": MID}, {"qos": "reclaimed_cores"}, {"qos": "dedicated_cores"},
                         {"qos": "reclaimed_cores", "priority": MID}, {"priority": 5500}])  # fmt: skip
PODS = st.lists(st.tuples(KINDS, st.integers(0, 3000), st.none() | st.integers(0, 3000)), max_size=6)


@given(PODS, st.integers(0, 100))
def test_the_same_idle_cpu_is_never_sold_twice(pods: list[Any], percent: int) -> None:
    """What mid pods may be sold and what reclaimed pods were sold fit into what is idle, and the other way round."""
    readings = [reading(f"p{n}", used, asked, **kind) for n, (kind, asked, used) in enumerate(pods)]
    used = sum(one or 0 for _, _, one in pods) + 1000
    node = NodeReading(online_cpus="0-9", cpu_usage_cores=used / 1000, memory_total_bytes=10 * GIB,
                       memory_available_bytes=0)  # fmt: skip
    at = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
    sample = NodeSample(node="n", boot_id="0" * 16, seq=1, sent_at=at, node_reading=node, pods=tuple(readings))
    mids = [one for one in readings if one.pod.priority == MID]
    reclaimed = [one for one in readings if one.pod.qos == "reclaimed_cores" and one not in mids]
    tenants = [one for one in readings if one not in mids and one not in reclaimed]
    idle = 10_000 - 1000 - sum(_taken(one) for one in tenants)
    to_mid = offered(sample, unallocated_percent=percent).cpu_millis
    sold = sum(one.pod.cpu_request_millis for one in reclaimed)
    assert to_mid + sold <= max(idle, sold)
    batch = batch_offer(sample, TEN, ColocationStrategy(cpu_reclaim_percent=100, mid_is_sold=True))
    assert batch is not None
    sold_to_mid = sum(one.pod.cpu_request_millis for one in mids)
    # Batch counts CPUs of their own as they were asked for: nobody can use more of them than there are.
    idle = (
        10_000
        - 1000
        - sum(one.pod.cpu_request_millis if one.pod.qos == "dedicated_cores" else _taken(one) for one in tenants)
    )
    assert batch.cpu_millis + sold_to_mid <= max(idle, sold_to_mid)
    used_by_mid = sum(round(1000 * (one.containers[0].cpu_usage_cores or 0)) for one in mids)
    assert sold_and_unused(sample).cpu_millis >= sold_to_mid - used_by_mid


def _taken(one: PodReading) -> int:
    used = one.containers[0].cpu_usage_cores
    asked = one.pod.cpu_request_millis
    if used is None:
        return asked
    return max(asked, round(used * 1000)) if one.pod.qos == "dedicated_cores" else round(used * 1000)


class Offer:
    """The offer of a host of ten CPUs, of which half is offered as it is unused, sample by sample."""

    def __init__(self, ten_cpus: NewNode, *, node_metric: bool = False, **over: Any) -> None:
        mid = {"enabled": True, "mode": "static", "static_cpu_percent": 50, "static_memory_percent": 50} | over
        given = {"mid": mid, "node_metric": {"enabled": node_metric}}
        self.offer = MidNodeOffer(ReporterSettings.model_validate(given))
        self._ten = ten_cpus

    def after(self, now_s: float, *pods: PodReading, age_s: float = 0.0, **seen: Any) -> int | None:
        known = {"allocation": None, "sample": self._ten(*pods), "sample_age_s": age_s, "node": None,
                 "in_a_cluster": False}  # fmt: skip
        found = self.offer.smoothed(ColocationInput(**known | seen), now_s)
        return None if found is None else found.cpu_millis


def test_nothing_is_offered_or_withheld_unless_the_settings_say_so(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus, enabled=False)
    assert offer.after(0, reading("mid", 1000, priority=MID)) is None
    assert offer.offer.withheld == Offered(0, 0)
    assert offer.offer.state() is None


def test_what_prod_pods_lend_is_learnt_for_the_node_metric_where_nothing_is_offered(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus, node_metric=True, enabled=False, cold_start_s=600)
    assert offer.offer.lent() is None
    told = [offer.after(now_s, reading("web", 1000)) for now_s in range(0, 700, 5)]
    assert (set(told), offer.offer.withheld) == ({None}, Offered(0, 0))
    lent = offer.offer.lent()
    assert lent is not None
    assert (near(lent.cpu_millis, 4000 - 1100 - 1100), lent.known_pods) == (True, 1)


def test_what_prod_pods_lend_is_not_known_before_the_node_is(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus, node_metric=True, enabled=False)
    offer.after(0, reading("web", 1000), in_a_cluster=True)
    assert offer.offer.lent() is None


def test_nothing_is_learnt_where_neither_is_on(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus, enabled=False)
    offer.after(0, reading("web", 1000))
    assert offer.offer.lent() is None


def test_what_mid_pods_were_sold_and_do_not_use_is_withheld(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus)
    offer.after(0, reading("mid", 1000, priority=MID), reading("web", 10))
    assert offer.offer.withheld == Offered(3000, 3 * GIB)


def test_a_fall_is_offered_at_once_and_a_rise_by_and_by(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus)
    assert [offer.after(0), offer.after(1, reading("web", 6000))] == [5000, 3000]
    rising = [offer.after(now_s) or 0 for now_s in range(2, 30)]
    assert rising[0] == 3000
    assert rising == sorted(rising)
    assert rising[-1] == 5000
    assert len(set(rising)) > 2


def test_time_alone_ends_an_offer_and_the_next_one_begins_as_it_is(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus)
    assert [offer.after(0), offer.after(50, age_s=50), offer.after(61, age_s=60.5)] == [5000, 5000, None]
    assert offer.offer.state() is None
    assert offer.after(62) == 5000


def test_samples_that_say_too_little_for_long_end_an_offer_as_none_do(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus)
    blind = ten_cpus(cpu_usage_cores=None)
    assert [offer.after(0), offer.after(60, sample=blind), offer.after(61, sample=blind)] == [5000, 5000, None]


@pytest.mark.parametrize(
    ("said", "millis"),
    [
        ({"enable": False}, None),
        ({"midStaticCPUReservedPercent": 20}, 2000),
        ({"midCPUThresholdPercent": 10}, 1000),
        ({"midReclaimMode": "usage"}, 0),
        ({"midStaticCPUReservedPercent": 101}, 5000),
    ],
)
def test_the_node_goes_before_what_is_configured(ten_cpus: NewNode, said: dict[str, Any], millis: int | None) -> None:
    offer = Offer(ten_cpus)
    amounts = {"cpu": "10", "memory": "10Gi"}
    text = str(said).replace("'", '"').replace("False", "false")
    annotations = {"node.koordinator.sh/colocation-strategy": text}
    node = {"metadata": {"annotations": annotations}, "status": {"capacity": amounts, "allocatable": amounts}}
    assert offer.after(0, node=node, in_a_cluster=True) == millis
    assert bool(offer.offer.unread) == (millis == 5000)


def test_a_label_says_the_fixed_part(ten_cpus: NewNode) -> None:
    labels = {"node.koordinator.sh/mid-static-cpu-reserved-ratio": "0.3"}
    node = {"metadata": {"labels": labels}, "status": {"capacity": {"cpu": "10", "memory": "10Gi"}}}
    assert Offer(ten_cpus).after(0, node=node, in_a_cluster=True) == 3000


def test_an_offer_is_learnt_from_samples_and_carries_its_terms(ten_cpus: NewNode) -> None:
    offer = Offer(ten_cpus, mode="prediction", cold_start_s=600)
    pods = reading("web", 1000), reading("mid", 0, priority=MID)
    told = [offer.after(now_s, *pods) or 0 for now_s in range(0, 700, 5)]
    assert set(told[:120]) == {0}
    # What is known for long enough is a rise like any other.
    assert len(set(told[120:])) > 2
    state = offer.offer.state()
    assert state is not None
    assert told[-1] == state["cpu_millis"] == state["cpu"]["amount"]
    assert near(told[-1], 4000 - 1100 - 1100)
    assert (state["known_pods"], state["new_pods"]) == (1, 0)
    assert well_shaped("reporter", {"mid": state}) == {"mid": state}
    first, *_, last = mid_lines(state)
    assert "at most 8.00 unused and 10.00 in all" in first
    assert last.strip() == "pods that are known for long enough: 1, for too short: 0"


@pytest.mark.parametrize("seconds", [1.0, 86_400.0, 2_592_000.0])
def test_a_pod_may_have_to_be_known_for_days(seconds: float) -> None:
    settings = ReporterSettings.model_validate({"mid": {"cold_start_s": seconds}})
    assert settings.mid.prediction.cold_start_s == seconds


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [(1000, 950, False), (1000, 949, True), (1000, 9000, False), (1000, None, True), (None, 0, True)],
)
def test_what_is_written_at_once(now: Any, before: int | None, after: int | None, urgent: bool) -> None:
    rules = field.MidFieldSettings()

    def written(millis: int | None) -> Any:
        return field.fragment(FieldView(now, mid=None if millis is None else Offered(millis, GIB)), rules)

    assert field.urgent(written(before), written(after), rules) == urgent


async def test_mid_resources_stand_on_the_node_and_leave_it_with_the_offer(now: Any) -> None:
    api = Api()
    api.put("/api/v1/nodes/n1", {"spec": {}, "status": {"capacity": {}, "allocatable": {}}})
    writer = KubeNode(FakeKube(api), "n1", dict)
    fragment = field.fragment(FieldView(now, mid=Offered(1500, GIB)), field.MidFieldSettings())
    assert fragment is not None
    await writer.write(cnr("n1", {"mid": fragment}))
    status = api.objects["/api/v1/nodes/n1"]["status"]
    for part in ("capacity", "allocatable"):
        # The API server writes 1500 so, too.
        assert {name: status[part].get(name) for name in (MID_CPU, MID_MEMORY)} == {
            MID_CPU: "1500", MID_MEMORY: str(GIB)
        }  # fmt: skip
    await writer.write(cnr("n1", {}))
    assert not {MID_CPU, MID_MEMORY} & api.objects["/api/v1/nodes/n1"]["status"]["allocatable"].keys()
