"""Every report field: what it prints, and what it leaves out."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import yaml
from fixture_types import NewAllocation, NewSample
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.reporter import fields as package
from services.reporter.core.field import FieldSettings, FieldView, Offered, ReportField
from services.reporter.core.overcommit.kubelet_binding import KubeletManagers
from services.reporter.fields import conditions, node_metrics, properties, reclaimed, topology
from shared.build import Build
from shared.contracts.allocation import PoolAllocation
from shared.contracts.readiness import ConfigRefusal, ServiceHealth
from shared.contracts.sample import ApplicationReading, NodeReading
from shared.core.cpus.shares import shared_out
from shared.core.scan import modules_in

FIELDS: dict[str, ReportField[Any]] = {name: module.FIELD for name, module in modules_in(package).items()}

# The tutorial's listing before any pod runs, as printed there.
TUTORIAL = """
status:
    resourceAllocatable:
        katalyst.kubewharf.io/reclaimed_memory: "195257901056"
        katalyst.kubewharf.io/reclaimed_millicpu: 44k
    resourceCapacity:
        katalyst.kubewharf.io/reclaimed_memory: "195257901056"
        katalyst.kubewharf.io/reclaimed_millicpu: 44k
"""


@pytest.fixture
def full(now: datetime, allocation: NewAllocation, sample: NewSample, services: tuple[ServiceHealth, ...]) -> FieldView:
    batch, mid, binding = Offered(4541, 1 << 30), Offered(1500, 1 << 30), KubeletManagers("static", "None", 2)
    told = FieldView(now, allocation(), True, sample(), True, services, batch=batch, mid=mid)
    return replace(told, bearable=(("cpu", 1.5),), binding=binding)


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_with_no_input_at_all_is_absent_or_says_that_nothing_was_received(name: str, now: datetime) -> None:
    fragment = FIELDS[name].fragment(FieldView(now), FIELDS[name].settings())
    assert fragment is None or list(fragment["status"]) == ["conditions"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_never_says_zero_where_its_figures_are_missing(
    name: str, now: datetime, sample: NewSample, services: tuple[ServiceHealth, ...]
) -> None:
    bare = sample(node_reading=NodeReading(online_cpus="0-47"), numas=(), pools=(), pods=())
    fragment = FIELDS[name].fragment(FieldView(now, None, False, bare, True, services), FIELDS[name].settings())
    assert '"0"' not in json.dumps(fragment)


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_json_and_says_the_same_twice(name: str, full: FieldView) -> None:
    field = FIELDS[name]
    one, two = field.fragment(full, field.settings()), field.fragment(full, field.settings())
    assert one is not None
    assert json.loads(json.dumps(one)) == two
    assert not field.urgent(one, two, field.settings())


@pytest.mark.parametrize("name", FIELDS)
def test_a_fields_settings_refuse_unknown_keys(name: str) -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        FIELDS[name].settings(no_such_setting=1)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "node_metrics"])
def test_a_field_that_appears_is_written_at_once(name: str, full: FieldView, now: datetime) -> None:
    field = FIELDS[name]
    assert field.urgent(None, field.fragment(full, field.settings()), field.settings())


def test_reclaimed_resources_are_the_tutorials_listing(now: datetime, allocation: NewAllocation) -> None:
    fragment = present(
        reclaimed.fragment(FieldView(now, allocation(reclaimed_cpu_millis=44_000), True), reclaimed.ReclaimedSettings())
    )
    status = fragment["status"]
    assert {"status": {k: status[k] for k in ("resourceAllocatable", "resourceCapacity")}} == yaml.safe_load(TUTORIAL)


def test_todays_place_carries_both_spellings(now: datetime, allocation: NewAllocation) -> None:
    resources = present(reclaimed.fragment(FieldView(now, allocation(), True), reclaimed.ReclaimedSettings()))[
        "status"
    ]["resources"]
    amounts = {
        "katalyst.kubewharf.io/reclaimed_memory": "195257901056",
        "katalyst.kubewharf.io/reclaimed_millicpu": "42k",
        "resource.katalyst.kubewharf.io/reclaimed_memory": "195257901056",
        "resource.katalyst.kubewharf.io/reclaimed_millicpu": "42k",
    }
    assert resources == {"allocatable": amounts, "capacity": amounts}


def test_allocatable_is_what_is_told_and_capacity_what_is_applied(now: datetime, allocation: NewAllocation) -> None:
    view = FieldView(now, allocation(), True, offered=Offered(41_000, 1))
    status = present(reclaimed.fragment(view, reclaimed.ReclaimedSettings()))["status"]
    cpu, memory = "katalyst.kubewharf.io/reclaimed_millicpu", "katalyst.kubewharf.io/reclaimed_memory"
    assert (status["resourceAllocatable"][cpu], status["resourceCapacity"][cpu]) == ("41k", "42k")
    assert (status["resources"]["allocatable"][memory], status["resources"]["capacity"][memory]) == (
        "1",
        "195257901056",
    )


def test_a_stale_allocation_keeps_its_values(now: datetime, allocation: NewAllocation) -> None:
    fresh, stale = (
        reclaimed.fragment(FieldView(now, allocation(), flag), reclaimed.ReclaimedSettings()) for flag in (True, False)
    )
    assert stale == fresh


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [
        pytest.param((42_000, 10**9), (41_999, 10**9), True, id="the smallest fall of CPU"),
        pytest.param((42_000, 10**9), (42_000, 10**9 - 1), True, id="the smallest fall of memory"),
        pytest.param((42_000, 10**9), (44_000, 10**9 - 1), True, id="memory falls while CPU rises"),
        pytest.param((42_000, 10**9), (42_299, 10**9), False, id="a rise below the step"),
        pytest.param((42_000, 10**9), (42_300, 10**9), True, id="a rise of one step"),
        pytest.param((42_000, 10**9), (42_000, 10**9 + (300 << 20)), True, id="a rise of memory of one step"),
        pytest.param((42_000, 10**9), (42_000, 10**9), False, id="nothing"),
        pytest.param((0, 0), (0, 0), False, id="nothing, at zero"),
        pytest.param((42_000, 10**9), (0, 0), True, id="to zero"),
    ],
)
def test_a_fall_is_urgent_and_a_small_rise_is_not(
    now: datetime, allocation: NewAllocation, before: tuple[int, int], after: tuple[int, int], urgent: bool
) -> None:
    settings = reclaimed.ReclaimedSettings()
    one, two = (
        reclaimed.fragment(
            FieldView(now, allocation(reclaimed_cpu_millis=cpu, reclaimed_memory_bytes=memory)), settings
        )
        for cpu, memory in (before, after)
    )
    assert reclaimed.urgent(one, two, settings) is urgent


def test_a_minimum_step_of_zero_makes_every_rise_urgent_but_not_standing_still(
    now: datetime, allocation: NewAllocation
) -> None:
    settings = reclaimed.ReclaimedSettings(min_rise_cpu_millis=0, min_rise_memory_bytes=0)
    fragment = reclaimed.fragment(FieldView(now, allocation()), settings)
    more = reclaimed.fragment(FieldView(now, allocation(reclaimed_cpu_millis=42_001)), settings)
    assert not reclaimed.urgent(fragment, fragment, settings)
    assert reclaimed.urgent(fragment, more, settings)


def test_properties_count_numa_nodes_and_cpus(full: FieldView) -> None:
    assert properties.fragment(full) == {
        "spec": {
            "nodeResourceProperties": [
                {"propertyName": "numa", "propertyQuantity": "2"},
                {"propertyName": "cpu", "propertyQuantity": "48"},
                {"propertyName": "memory", "propertyQuantity": "200626610176"},
            ]
        }
    }


def test_properties_say_the_version_also_before_anything_is_measured(now: datetime) -> None:
    built = Build("0.1.0", "0123abcd", "3.13.1")
    assert properties.fragment(FieldView(now, build=built)) == {
        "spec": {
            "nodeResourceProperties": [
                {"propertyName": "agent_version", "propertyValues": ["0.1.0"]},
                {"propertyName": "agent_revision", "propertyValues": ["0123abcd"]},
            ]
        }
    }


def test_a_revision_that_no_build_has_recorded_is_left_out(full: FieldView) -> None:
    said = present(properties.fragment(replace(full, build=Build("0.1.0", "", "3.13.1"))))
    names = [row["propertyName"] for row in said["spec"]["nodeResourceProperties"]]
    assert names == ["numa", "cpu", "memory", "agent_version"]


def test_topology_has_both_shapes_ascending_with_the_reserve_taken_off(full: FieldView) -> None:
    status = present(topology.fragment(full))["status"]
    numa0: dict[str, Any] = {
        "allocatable": {"cpu": "22"},
        "capacity": {"cpu": "24", "memory": "100313305088"},
        "allocations": [
            {
                "consumer": "default/shared-normal-pod/aa",
                "requests": {"cpu": "2", "memory": "1073741824"},
            }
        ],
    }
    numa1 = {"allocatable": {"cpu": "24"}, "capacity": {"cpu": "24", "memory": "100313305088"}}
    assert status["topologyStatus"]["sockets"] == [
        {"socketID": 0, "numas": [{"numaID": 0, **numa0}]},
        {"socketID": 1, "numas": [{"numaID": 1, **numa1}]},
    ]
    zone0, zone1 = status["topologyZone"]
    assert (zone0["type"], zone0["name"], zone1["name"]) == ("Socket", "0", "1")
    offer = {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "21k"}
    assert zone0["children"] == [
        {
            "type": "Numa",
            "name": "0",
            "resources": {"allocatable": numa0["allocatable"] | offer, "capacity": numa0["capacity"] | offer},
            "allocations": numa0["allocations"],
        }
    ]


def _numa_offers(view: FieldView) -> list[tuple[str | None, ...]]:
    name = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
    zones = [
        numa for socket in present(topology.fragment(view))["status"]["topologyZone"] for numa in socket["children"]
    ]
    return [tuple(zone["resources"][key].get(name) for key in ("allocatable", "capacity")) for zone in zones]


def test_each_numa_zone_says_its_part_of_what_is_told_and_of_what_is_applied(
    now: datetime, allocation: NewAllocation, sample: NewSample
) -> None:
    pools = (PoolAllocation(pool="reclaim", cpus="0,12-13"),)
    view = FieldView(
        now, allocation(reclaimed_cpu_millis=3001, pools=pools), True, sample(), True, offered=Offered(3, 1)
    )
    assert _numa_offers(view) == [("1", "1k"), ("2", "2001")]
    assert _numa_offers(FieldView(now, allocation(pools=()), True, sample(), True)) == [(None, None)] * 2


def test_a_part_of_the_offer_that_moves_waits_for_the_offer_itself(
    now: datetime, allocation: NewAllocation, sample: NewSample
) -> None:
    one, two, other = (
        topology.fragment(FieldView(now, allocation(reclaimed_cpu_millis=cpu, pods=pods), True, sample(), True))
        for cpu, pods in ((42_000, ()), (44_000, ()), (42_000, allocation().pods))
    )
    assert one != two
    assert not topology.FIELD.urgent(one, two, FieldSettings())
    assert topology.FIELD.urgent(one, other, FieldSettings())
    assert topology.FIELD.urgent(None, one, FieldSettings())


@given(st.integers(0, 10**9), st.dictionaries(st.integers(0, 64), st.integers(0, 8192), max_size=8))
def test_shares_add_up_and_follow_the_weights(total: int, weights: dict[int, int]) -> None:
    fragments = shared_out(total, weights)
    if sum(weights.values()) == 0:
        assert fragments == {}
        return
    assert sum(fragments.values()) == total
    assert list(fragments) == sorted(weights)
    for key, weight in weights.items():
        assert abs(fragments[key] - total * weight / sum(weights.values())) < 1
        assert fragments[key] == 0 or weight > 0


def test_a_pod_whose_cpus_span_numa_nodes_is_claimed_by_none(full: FieldView) -> None:
    assert "reclaimed-normal-pod" not in json.dumps(topology.fragment(full))


def test_a_reclaimed_pod_on_one_numa_node_asks_for_reclaimed_resources(
    now: datetime, allocation: NewAllocation, sample: NewSample
) -> None:
    bound = allocation(pods=[p.model_copy(update={"cpus": "1-2"}) for p in allocation().pods if p.pool == "reclaim"])
    status = present(topology.fragment(FieldView(now, bound, True, sample(), True)))["status"]
    assert status["topologyStatus"]["sockets"][0]["numas"][0]["allocations"] == [
        {
            "consumer": "default/reclaimed-normal-pod/bb",
            "requests": {
                "resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k",
                "resource.katalyst.kubewharf.io/reclaimed_memory": "1073741824",
            },
        }
    ]


def test_unknown_sockets_leave_the_older_shape_out(now: datetime, allocation: NewAllocation, sample: NewSample) -> None:
    numas = [numa.model_copy(update={"extra": {}}) for numa in sample().numas]
    status = present(topology.fragment(FieldView(now, allocation(), True, sample(numas=numas), True)))["status"]
    assert [(zone["type"], zone["name"]) for zone in status["topologyZone"]] == [("Numa", "0"), ("Numa", "1")]
    assert "topologyStatus" not in status


def test_without_an_allocation_topology_says_capacity_only(now: datetime, sample: NewSample) -> None:
    numa = present(topology.fragment(FieldView(now, sample=sample(), sample_fresh=True)))["status"]["topologyStatus"][
        "sockets"
    ][0]["numas"][0]
    assert set(numa) == {"numaID", "capacity"}


def test_node_metrics_tell_usage_of_node_numas_and_classes(full: FieldView) -> None:
    metrics = present(node_metrics.fragment(full))["status"]["nodeMetricStatus"]
    assert metrics == {
        "updateTime": "2026-01-01T12:00:00Z",
        "nodeMetric": {
            "genericUsage": {"cpu": "2250m", "memory": "626610176"},
            "numaUsage": [
                {"numaId": 0, "usage": {"memory": "1313305088"}},
                {"numaId": 1, "usage": {"memory": "313305088"}},
            ],
        },
        "groupMetric": [
            {
                "QoSLevel": "reclaimed_cores",
                "genericUsage": {"cpu": "1250m", "memory": "2097152"},
                "podList": ["default/reclaimed-normal-pod"],
            },
            {
                "QoSLevel": "shared_cores",
                "genericUsage": {"cpu": "1", "memory": "1048576"},
                "podList": ["default/shared-normal-pod"],
            },
        ],
    }


def test_usage_from_a_stale_sample_is_left_out_and_the_machine_is_not(
    now: datetime, allocation: NewAllocation, sample: NewSample
) -> None:
    stale = FieldView(now, allocation(), True, sample(), False)
    assert node_metrics.fragment(stale) is None
    assert properties.fragment(stale) is not None


def _conditions(view: FieldView) -> dict[str, tuple[str, str]]:
    rows = present(conditions.fragment(view))["status"]["conditions"]
    return {row["type"]: (row["status"], row["reason"]) for row in rows}


def test_conditions_when_all_is_well_include_those_of_the_allocation(full: FieldView) -> None:
    assert _conditions(full) == {
        "ServicesReady": ("True", "AllServicesReady"),
        "AllocationFresh": ("True", "Fresh"),
        "AllocationApplied": ("True", "Applied"),
        "SmallMachine": ("True", "SmallMachine"),
    }


def test_conditions_say_stale_held_and_which_service_fails(
    now: datetime, allocation: NewAllocation, services: tuple[ServiceHealth, ...]
) -> None:
    failing = (services[0], services[1].model_copy(update={"ok": False, "why": "no pods"}))
    view = FieldView(now, allocation(status="dry-run"), False, services=failing)
    assert _conditions(view) == {
        "ServicesReady": ("False", "WithServicesNotReady"),
        "AllocationFresh": ("False", "Stale"),
        "AllocationApplied": ("False", "DryRun"),
        "SmallMachine": ("True", "SmallMachine"),
    }
    assert present(conditions.fragment(view))["status"]["conditions"][0]["message"] == "qrm: no pods"


def test_an_application_that_cannot_be_measured_is_a_condition(full: FieldView) -> None:
    assert full.sample is not None
    listed = (ApplicationReading(name="good"), ApplicationReading(name="yarn", unmeasured="no cgroup y on this node"))
    lacking = replace(full, sample=full.sample.model_copy(update={"host_applications": listed}))
    found = conditions.fragment(lacking)
    assert found is not None
    (row,) = [one for one in found["status"]["conditions"] if one["type"] == "HostApplicationUnmeasured"]
    assert row["message"].endswith("(metrics.host_applications): yarn: no cgroup y on this node")
    assert "HostApplicationUnmeasured" not in _conditions(full)
    # An old sample says nothing of now.
    assert "HostApplicationUnmeasured" not in _conditions(replace(lacking, sample_fresh=False))


def test_a_refused_configuration_is_a_condition_that_is_written_at_once(
    now: datetime, allocation: NewAllocation, services: tuple[ServiceHealth, ...]
) -> None:
    refusal = ConfigRefusal(revision=12, why="qrm.lease_s = -1")
    refusing = (services[0], services[1].model_copy(update={"config_refused": refusal}))
    before, after = (
        conditions.fragment(FieldView(now, allocation(), True, services=healths)) for healths in (services, refusing)
    )
    assert conditions.urgent(before, after, FieldSettings())
    (row,) = [row for row in present(after)["status"]["conditions"] if row["type"] == "ConfigRefused"]
    assert (row["status"], row["reason"]) == ("True", "Refused")
    assert row["message"] == "the configuration before stays in force; qrm: revision 12: qrm.lease_s = -1"


def test_a_condition_whose_words_alone_change_waits(
    now: datetime, allocation: NewAllocation, services: tuple[ServiceHealth, ...]
) -> None:
    one, two = (
        conditions.fragment(FieldView(now, allocation(status="held", why=[{"rule": rule}]), True, services=services))
        for rule in ("waited 3 s", "waited 4 s")
    )
    assert one != two
    assert not conditions.urgent(one, two, FieldSettings())
