"""What over-commitment a node says that it can bear, over time."""

from collections.abc import Iterable

import pytest
from fixture_types import NewSample

from services.reporter.core.node_capacity import NodeCapacity, node_capacity
from services.reporter.core.overcommit.bearable import CPU_RULES
from services.reporter.core.overcommit.bearing import Bearing, BearingRules
from services.reporter.core.overcommit.report import OvercommitReport
from services.reporter.core.overcommit.usage import PodsDemand, demands
from services.reporter.settings import ReporterSettings
from shared.contracts.kube.overcommit import DOMAIN
from shared.contracts.pod import Container, Pod, QosClass
from shared.contracts.sample import ContainerReading, NodeReading, PodReading, Pressure
from shared.settings import check

RULES = BearingRules(300, 600, CPU_RULES)


def said(uses: Iterable[int], request: int = 4000, allocatable: int = 16_000) -> list[float | None]:
    """One use a second."""
    bearing = Bearing(RULES)
    return [bearing.next(PodsDemand(request, used), allocatable, float(now)) for now, used in enumerate(uses)]


def test_nothing_is_said_before_a_whole_window_was_seen() -> None:
    found = said([1000] * 400)
    assert found[:300] == [None] * 300
    assert found[300:] == [pytest.approx(1.55)] * 100


def test_a_load_of_ten_seconds_moves_nothing_and_one_of_thirty_does_at_once() -> None:
    calm = [1000] * 600
    assert {f"{ratio:.2f}" for ratio in said([*calm, *[9000] * 10, *calm])[300:] if ratio} == {"1.55"}
    found = said([*calm, *[9000] * 30, *calm])
    assert found[599] == pytest.approx(1.55)
    assert found[625] == pytest.approx(1.0)


@pytest.mark.parametrize("second", range(5))
def test_a_spike_in_every_fifth_slot_is_a_load_wherever_in_the_slot_it_comes(second: int) -> None:
    """A slot is five seconds; of single uses these would be so few that they are left out."""
    found = said([9000 if now % 25 == second else 1000 for now in range(600)])
    assert found[-1] == pytest.approx(1.0)


def test_a_rise_comes_ten_minutes_after_the_load_has_gone() -> None:
    found = said([*[9000] * 400, *[1000] * 1500])
    rose = next(place for place, ratio in enumerate(found) if ratio and ratio > 1)
    assert 400 + 600 < rose <= 400 + 300 + 600


def test_the_node_never_shows_less_than_its_pods_were_sold() -> None:
    assert said([16_000] * 400, request=20_010)[-1] == pytest.approx(1.26)


def test_pods_without_a_figure_use_what_they_ask_for_and_reclaimed_ones_do_not_count(
    sample: NewSample,
) -> None:
    def pod(name: str, qos: QosClass = "shared_cores") -> Pod:
        asks = Container(name="c", cpu_request_millis=2000, memory_request_bytes=100)
        return Pod(uid=name.encode().hex(), name=name, qos=qos, phase="Running", containers=(asks,))

    usage = ContainerReading(name="c", cpu_usage_cores=0.5, load1=0.75, memory_usage_bytes=40)
    pods = (
        PodReading(pod=pod("known"), containers=(usage,)),
        PodReading(pod=pod("unknown")),
        PodReading(pod=pod("batch", "reclaimed_cores"), containers=(usage,)),
    )
    found = demands(sample(pods=pods))
    assert found == {"cpu": PodsDemand(4000, 2750), "memory": PodsDemand(200, 140)}
    assert demands(sample(pods=pods, pods_left_out=1)) is None
    half = PodReading(pod=pod("half"), containers=(usage, ContainerReading(name="d")))
    assert demands(sample(pods=(half,))) == {"cpu": PodsDemand(2000, 2000), "memory": PodsDemand(100, 40)}


def test_memory_that_tasks_wait_for_is_all_in_use(sample: NewSample) -> None:
    for percent, used in ((4.9, 0), (5.0, 8 << 30)):
        pressure = Pressure(full_avg10_percent=percent)
        node = NodeReading(online_cpus="0-3", memory_total_bytes=8 << 30, memory_pressure=pressure)
        found = demands(sample(pods=(), node_reading=node))
        assert found is not None
        assert found["memory"] == PodsDemand(0, used)


def test_old_samples_and_settings_that_are_off_say_nothing(sample: NewSample) -> None:
    settings = check(ReporterSettings, {"overcommit": {"enabled": True, "window_s": 1}}, where="reporter")
    report, capacity = OvercommitReport(settings.overcommit.rules), NodeCapacity(4000, 1 << 30)
    for now in range(3):
        report.follow(sample(seq=now + 1), capacity, float(now))
    assert dict(report.said).keys() == {"cpu", "memory"}
    report.follow(None, capacity, 4.0)
    assert report.said == ()
    off = OvercommitReport(ReporterSettings().overcommit.rules)
    for now in range(3):
        off.follow(sample(seq=now + 1), capacity, float(now))
    assert off.said == ()


def test_what_a_node_has_is_kubelets_figure_and_not_the_amplified_one() -> None:
    shown = {"cpu": "8", "memory": "16Gi"}
    own = {f"{DOMAIN}/original_{field}_cpu": "4" for field in ("capacity", "allocatable")}
    own |= {f"{DOMAIN}/original_{field}_memory": "8Gi" for field in ("capacity", "allocatable")}
    node = {"metadata": {"annotations": own}, "status": {"capacity": shown, "allocatable": shown}}
    assert node_capacity(node) == NodeCapacity(4000, 8 << 30)
    node["metadata"] = {"annotations": {**own, f"{DOMAIN}/original_capacity_cpu": "junk"}}
    assert node_capacity(node) == NodeCapacity(8000, 16 << 30, 4000, 8 << 30)
