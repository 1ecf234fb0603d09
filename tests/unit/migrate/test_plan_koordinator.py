"""`plan_koordinator`: each value of Koordinator's objects, and where it goes."""

import json

import pytest
from plan_documents import koordinator

from services.central.core.slo.overlay import leaves
from services.central.core.slo.settings import settings_of_strategy
from sublet.migrate.plan.koordinator import plan_koordinator
from sublet.migrate.plan.koordinator_fields import FIELDS, GATE_RULES, GATES
from sublet.migrate.plan.line import MigrationPlan, PlanLine

GATED = "BEMemoryEvict=true,BECPUEvict=true,MemoryAllocatableEvict=true"
COLOCATION, THRESHOLDS = "colocation-config.", "resource-threshold-config."


def line(plan: MigrationPlan, field: str) -> PlanLine:
    return next(one for one in plan.lines if one.given_key == field)


@pytest.mark.parametrize(
    ("field", "key", "setting"),
    [
        (COLOCATION + "cpuReclaimThresholdPercent", "reporter.batch.cpu_reclaim_percent", 70),
        (COLOCATION + "degradeTimeMinutes", "reporter.batch.degrade_after_s", 600),
        (COLOCATION + "resourceDiffThreshold", "reporter.fields.batch.urgent_fall_percent", 20),
        (THRESHOLDS + "enable", "advisor.policy", "koordinator"),
        (THRESHOLDS + "cpuSuppressThresholdPercent", "advisor.policies.koordinator.suppress_threshold_percent", 60),
        (THRESHOLDS + "memoryEvictThresholdPercent", "evictor.plugins.memory_usage.threshold_percent", 80),
        (THRESHOLDS + "cpuEvictTimeWindowSeconds", "evictor.plugins.cpu_satisfaction.window_samples", 12),
        (THRESHOLDS + "cpuEvictPolicy", "evictor.plugins.cpu_satisfaction.limit", "offer"),
        (
            THRESHOLDS + "memoryAllocatableEvictThresholdPercent",
            "evictor.plugins.reclaimed_allocatable.threshold_percent",
            120,
        ),
        ("feature-gates.BEMemoryEvict", "evictor.plugins.memory_usage.enabled", True),
        ("feature-gates.MemoryAllocatableEvict", "evictor.plugins.reclaimed_allocatable.enabled", True),
        ("feature-gates", "evictor.plugins.reclaimed_allocatable.resources", ["memory"]),
        (COLOCATION + "midCPUThresholdPercent", "reporter.mid.cpu_at_most_percent", 40),
        (COLOCATION + "midReclaimMode", "reporter.mid.mode", "static"),
        ("prediction-cold-start-duration", "reporter.mid.cold_start_s", 5400.0),
        ("memory-evict-cool-time-seconds", "evictor.plugins.memory_usage.cooling_s", 10.0),
    ],
)
def test_a_value_goes_to_its_setting(field: str, key: str, setting: object) -> None:
    found = line(plan_koordinator(koordinator(GATED)), field)
    assert (found.effect, found.key, found.setting) == ("maps", f"settings.{key}", setting)


def test_nothing_is_lost_and_nothing_wrong_is_found_in_what_is_good() -> None:
    plan = plan_koordinator(koordinator(GATED))
    assert plan.faults == []
    given = [(one.source, one.given_key, one.key) for one in plan.lines]
    assert len(given) == len(set(given))
    assert all(one.note for one in plan.lines if one.effect not in ("maps", "kept"))


def test_what_would_have_two_writers_waits() -> None:
    plan = plan_koordinator(koordinator())
    assert plan.later == {
        "slo": {"enabled": True, "namespace": "koordinator-system", "name": "slo-controller-config"},
        "settings": {"reporter": {"batch": {"enabled": True}, "mid": {"enabled": True}}},
        "profiles": {"enabled": True},
    }
    assert plan.values["mode"] == "observe"
    assert "enabled" not in plan.values["settings"]["reporter"]["batch"]
    assert not {"profiles", "slo"} & plan.values.keys()


def test_a_feature_whose_gate_is_off_is_not_taken_over() -> None:
    plan = plan_koordinator(koordinator("BECPUSuppress=false"))
    assert line(plan, THRESHOLDS + "enable").effect == "off"
    found = line(plan, THRESHOLDS + "memoryEvictThresholdPercent")
    assert (found.effect, found.note) == ("off", "the feature gate BEMemoryEvict of koordlet is off")
    assert not {"advisor", "evictor"} & plan.values["settings"].keys()


def test_what_following_the_config_map_switches_on_without_its_gate_is_said() -> None:
    on = "slo.enabled switches this on: take `enable` out of the ConfigMap first"
    plan = plan_koordinator(koordinator("BECPUSuppress=false", **{"data:\n": QUALITY}))
    assert line(plan, THRESHOLDS + "enable").note == f"the feature gate BECPUSuppress of koordlet is off; {on}"
    assert line(plan, "resource-qos-config.lsClass.memoryQOS.enable").note.endswith(on)
    assert on not in line(plan, THRESHOLDS + "memoryEvictThresholdPercent").note  # its plugin stays off
    quiet = plan_koordinator(koordinator(**{"data:\n": QUALITY.replace('"enable": true, "min', '"min')}))
    found = line(quiet, "resource-qos-config.lsClass.memoryQOS.minLimitPercent")
    assert (found.effect, found.note) == ("off", "the feature gate CgroupReconcile of koordlet is off")
    for policy, said in (("auto", True), ("cfsQuotaBurstOnly", True), ("none", False)):
        burst = f"data:\n  cpu-burst-config: '{json.dumps({'clusterStrategy': {'policy': policy}})}'\n"
        plan = plan_koordinator(koordinator("CPUBurst=false", **{"data:\n": burst}))
        assert ("take `policy` out" in line(plan, "cpu-burst-config.policy").note) is said


def test_a_burst_becomes_what_is_saved_up_and_what_quotas_become() -> None:
    said = {"policy": "auto", "cfsQuotaBurstPercent": 200, "cfsQuotaBurstPeriodSeconds": 600}
    burst = f"data:\n  cpu-burst-config: '{json.dumps({'clusterStrategy': said})}'\n"
    qrm = plan_koordinator(koordinator(**{"data:\n": burst})).values["settings"]["qrm"]
    assert qrm["burst_percent"] == 100
    assert qrm["quota_burst"] == {"enabled": True, "most_percent": 200, "budget_s": 600}


def test_a_strategy_that_is_off_is_not_taken_over() -> None:
    plan = plan_koordinator(koordinator(GATED, **{'"enable": true, "cpuS': '"cpuS'}))
    assert {one.effect for one in plan.lines if one.given_key.startswith(THRESHOLDS)} == {"off"}
    assert line(plan, "feature-gates.BEMemoryEvict").effect == "off"
    assert not {"advisor", "evictor"} & plan.values["settings"].keys()


def test_a_value_out_of_our_bounds_is_named_with_its_bound_and_left_out() -> None:
    plan = plan_koordinator(
        koordinator(GATED, **{'"cpuReclaimThresholdPercent": 70': '"cpuReclaimThresholdPercent": 130'})
    )
    found = line(plan, COLOCATION + "cpuReclaimThresholdPercent")
    assert found.effect == "wrong"
    assert found.note == "130: want 0 to 100 here; the setting of the nodes holds"
    assert "cpu_reclaim_percent" not in plan.values["settings"]["reporter"]["batch"]


def test_a_setting_that_a_service_refuses_is_named_with_its_bound_and_left_out() -> None:
    plan = plan_koordinator(koordinator(GATED, **{'"10"': '"4000"'}))
    found = line(plan, "memory-evict-cool-time-seconds")
    assert found.effect == "wrong"
    assert "evictor.plugins.memory_usage.cooling_s = 4000.0: want at most 3600" in found.note
    assert "cooling_s" not in plan.values["settings"]["evictor"]["plugins"]["memory_usage"]


def test_what_the_plan_maps_is_what_central_makes_of_the_config_map() -> None:
    plan = plan_koordinator(koordinator("AllAlpha=true"))
    strategies = {"enable": True, "cpuSuppressThresholdPercent": 60, "memoryEvictThresholdPercent": 80}
    theirs = dict(leaves(settings_of_strategy("resource-threshold-config", strategies).settings))
    ours = {
        one.key.removeprefix("settings."): one.setting for one in plan.lines if one.given_key.startswith(THRESHOLDS)
    }
    assert ours.keys() & theirs.keys() >= {"advisor.policy", "evictor.plugins.memory_usage.threshold_percent"}
    assert {key: value for key, value in ours.items() if key in theirs} == {
        key: value for key, value in theirs.items() if key in ours
    }


def test_what_the_reader_refuses_is_named() -> None:
    plan = plan_koordinator(koordinator(**{'"cpuSuppressThresholdPercent": 60': '"cpuSuppressThresholdPercent": 600'}))
    assert [one.note for one in plan.faults] == ["= 600: want at most 100"]


def test_a_strategy_for_some_nodes_is_centrals_who_follows_the_config_map() -> None:
    found = line(plan_koordinator(koordinator()), COLOCATION + "cpuReclaimThresholdPercent[hot]")
    assert (found.effect, found.given) == ("kept", 50)
    assert found.note == "for nodes by their label pool alone: central does so once slo.enabled is set"
    plan = plan_koordinator(koordinator(**{"colocation-config": "cpu-normalization-config"}))
    assert line(plan, "cpu-normalization-config.cpuReclaimThresholdPercent[hot]").effect == "nothing"


def test_a_node_slo_that_differs_from_the_config_map_is_shown() -> None:
    assert line(plan_koordinator(koordinator()), "spec").effect == "later"  # the profile's
    plan = plan_koordinator(koordinator(**{"cpuSuppressThresholdPercent: 60": "cpuSuppressThresholdPercent: 65"}))
    found = line(plan, "spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent")
    assert (found.given, found.effect) == (65, "nothing")
    assert "comes to 60" in found.note


def test_without_the_agent_its_defaults_are_assumed_and_that_is_said() -> None:
    plan = plan_koordinator([one for one in koordinator() if one.kind != "DaemonSet"])
    assert "default gates are assumed" in line(plan, "feature-gates").note
    assert line(plan, THRESHOLDS + "enable").setting == "koordinator"


def test_a_profile_that_cannot_be_read_is_wrong() -> None:
    plan = plan_koordinator(koordinator(**{"qosClass: BE": "qosClass: BEST"}))
    assert [one.source for one in plan.faults] == ["ClusterColocationProfile/batch"]
    assert "spec.qosClass: want 'LSE'" in plan.faults[0].note
    assert "profiles" not in plan.later


QUALITY = """data:
  resource-qos-config: |
    {"clusterStrategy": {
      "lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 40}, "networkQOS": {"enable": true}},
      "beClass": {"cpuQOS": {"enable": true}}}}
"""


def test_what_is_said_by_class_becomes_settings_of_all_classes() -> None:
    plan = plan_koordinator(koordinator("CgroupReconcile=true", **{"data:\n": QUALITY}))
    assert plan.faults == []
    qrm = plan.values["settings"]["qrm"]
    strategy = {
        "lsClass": {"memoryQOS": {"enable": True, "minLimitPercent": 40}},
        "beClass": {"cpuQOS": {"enable": True}},
    }
    assert qrm == settings_of_strategy("resource-qos-config", strategy).settings["qrm"]
    assert qrm["memory_qos"]["shared_cores"]["min_percent"] == 40
    assert line(plan, "resource-qos-config.lsClass.memoryQOS.minLimitPercent").effect == "kept"
    assert line(plan, "resource-qos-config.lsClass.networkQOS.enable").effect == "nothing"
    off = plan_koordinator(koordinator(**{"data:\n": QUALITY}))
    assert line(off, "resource-qos-config.lsClass.memoryQOS.minLimitPercent").effect == "off"
    assert off.values["settings"]["qrm"].keys() == {"group_identity"}


def test_caches_and_disks_are_values_of_the_chart_where_their_gates_are_on() -> None:
    blocks = '[{"name": "/dev/sda", "type": "device", "ioCfg": {"readBPS": 5}}]'
    own = f'"resctrlQOS": {{"enable": true, "mbaPercent": 40}}, "blkioQOS": {{"enable": true, "blocks": {blocks}}}'
    document = {"data:\n": QUALITY.replace('"cpuQOS": {"enable": true}', own)}
    plan = plan_koordinator(koordinator("RdtResctrl=true,BlkIOReconcile=true", **document))
    assert plan.faults == []
    qrm = plan.values["settings"]["qrm"]
    assert qrm["resctrl"]["reclaimed_cores"]["bandwidth_percent"] == 40
    assert qrm["block_io"] == {"enabled": True, "reclaimed_cores": [{"device": "sda", "read_bps": 5}]}
    # An agent whose node lacks the folder would not start: that is for a person to know.
    assert "resctrl" not in plan.values["node"]
    assert "set node.resctrl" in line(plan, "feature-gates.RdtResctrl").note
    off = plan_koordinator(koordinator("CgroupReconcile=true,RdtResctrl=false", **document))
    for part in ("resctrlQOS.mbaPercent", "blkioQOS.enable"):
        assert line(off, f"resource-qos-config.beClass.{part}").effect == "off"
    assert off.values["settings"]["qrm"].keys() == {"memory_qos"}


def test_every_gate_and_every_key_has_a_rule() -> None:
    assert set(GATE_RULES) == set(GATES)
    assert len(FIELDS) == 8


def test_all_of_a_stage_are_switched_by_one_word() -> None:
    plan = plan_koordinator(koordinator("AllAlpha=true,AllBeta=false,BECPUSuppress=true,CPUEvict=false"))
    on = {
        one.given_key.removeprefix("feature-gates.") for one in plan.lines if one.given_key.startswith("feature-gates.")
    }
    assert on == {name for name, (_, stage) in GATES.items() if stage == "Alpha"} - {"CPUEvict"} | {"BECPUSuppress"}
