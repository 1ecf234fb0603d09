"""What Koordinator's isolation strategies come to as settings of qrm."""

from typing import Any

import pytest

from services.central.core.slo.keys import SloKey
from services.central.core.slo.settings import settings_of_strategy
from services.qrm.settings import QrmSettings
from shared.settings import check
from sublet.configuration.difference import as_text


def qrm(key: SloKey, **said: object) -> dict[str, Any]:
    """The section qrm for a strategy, which qrm takes as it is."""
    found = settings_of_strategy(key, said)
    assert found.unfollowed == ()
    section = found.settings.get("qrm", {})
    check(QrmSettings, section, where="qrm")
    return dict(section)


MOVING = {"enabled": True, "most_percent": 300, "budget_s": -1, "share_pool_percent": 50}


@pytest.mark.parametrize(
    ("said", "section"),
    [
        ({"policy": "auto"}, {"burst_percent": 100, "quota_burst": MOVING}),
        ({"policy": "cpuBurstOnly", "cpuBurstPercent": 40}, {"burst_percent": 40, "quota_burst": {"enabled": False}}),
        ({"policy": "cfsQuotaBurstOnly"}, {"burst_percent": 0, "quota_burst": MOVING}),
        (
            {
                "policy": "auto",
                "cfsQuotaBurstPercent": 150,
                "cfsQuotaBurstPeriodSeconds": 60,
                "sharePoolThresholdPercent": 70,
            },
            {
                "burst_percent": 100,
                "quota_burst": {"enabled": True, "most_percent": 150, "budget_s": 60, "share_pool_percent": 70},
            },
        ),
        ({"policy": "none", "cpuBurstPercent": 40}, {"burst_percent": 0, "quota_burst": {"enabled": False}}),
        ({"cpuBurstPercent": 40, "cfsQuotaBurstPercent": 150}, {}),
        ({}, {}),
    ],
)
def test_burst(said: dict[str, object], section: dict[str, Any]) -> None:
    assert qrm("cpu-burst-config", **said) == section


def test_a_burst_beyond_what_is_followed_is_named() -> None:
    said = {"policy": "auto", "cfsQuotaBurstPercent": 5000, "cfsQuotaBurstPeriodSeconds": 90_000}
    found = settings_of_strategy("cpu-burst-config", said)
    assert found.settings["qrm"]["quota_burst"] == {"enabled": True, "share_pool_percent": 50}
    assert [one.partition(":")[0] for one in found.unfollowed] == [
        "cpu-burst-config.cfsQuotaBurstPercent = 5000",
        "cpu-burst-config.cfsQuotaBurstPeriodSeconds = 90000",
    ]
    assert "want 100 to 1000" in found.unfollowed[0]


OFF = {"min_percent": 0, "low_percent": 0, "throttle_percent": 0, "wmark_ratio": 0, "wmark_min_adj": 0}
LS = {"min_percent": 0, "low_percent": 30, "throttle_percent": 0, "wmark_ratio": 95, "wmark_scale_permill": 20,
      "wmark_min_adj": -25}  # fmt: skip


def test_memory_qos_is_on_for_the_classes_that_say_so() -> None:
    on = {"memoryQOS": {"enable": True, "lowLimitPercent": 30}}
    classes = {"dedicated_cores": OFF, "shared_cores": LS, "reclaimed_cores": OFF, "system_cores": OFF}
    found = qrm("resource-qos-config", lsClass=on)
    assert found == {"memory_qos": {"enabled": True, **classes}}
    # As YAML it must not refer from one class to another: a configuration has no aliases.
    assert not {"&", "*"} & set(as_text(found))
    off = {"memoryQOS": {"enable": False, "lowLimitPercent": 30}}
    assert qrm("resource-qos-config", lsClass=off) == {"memory_qos": {"enabled": False}}
    assert qrm("resource-qos-config", lsClass={"memoryQOS": {"lowLimitPercent": 30}}) == {}


@pytest.mark.parametrize(
    ("said", "section"),
    [
        (
            {"beClass": {"cpuQOS": {"enable": True}}},
            {"enabled": True, "dedicated_cores": 0, "shared_cores": 0, "reclaimed_cores": -1, "system_cores": 0},
        ),
        (
            {"lsClass": {"cpuQOS": {"enable": True, "groupIdentity": 1}}, "lsrClass": {"cpuQOS": {"enable": True}}},
            {"enabled": True, "dedicated_cores": 2, "shared_cores": 1, "reclaimed_cores": 0, "system_cores": 0},
        ),
        ({"beClass": {"cpuQOS": {"enable": False}}}, {"enabled": False}),
        ({"policies": {"cpuPolicy": "coreSched"}, "beClass": {"cpuQOS": {"enable": True}}}, {"enabled": False}),
    ],
)
def test_group_identity(said: dict[str, object], section: dict[str, Any]) -> None:
    assert qrm("resource-qos-config", **said) == {"group_identity": section}


WHOLE = {"start_percent": 0, "end_percent": 100, "bandwidth_percent": 100}


def test_resctrl() -> None:
    on = {"resctrlQOS": {"enable": True, "mbaPercent": 0}}
    classes = {"dedicated_cores": WHOLE, "shared_cores": WHOLE, "reclaimed_cores": {**WHOLE, "end_percent": 30}}
    assert qrm("resource-qos-config", beClass=on) == {"resctrl": {"enabled": True, **classes}}
    assert qrm("resource-qos-config", beClass={"resctrlQOS": {"enable": False}}) == {"resctrl": {"enabled": False}}
