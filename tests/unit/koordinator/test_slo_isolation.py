"""What Koordinator's isolation strategies come to as settings of qrm."""

from typing import Any

import pytest

from services.central.core.slo.keys import SloKey
from services.central.core.slo.settings import settings_of_strategy
from services.qrm.settings import QrmSettings
from shared.settings import check


def qrm(key: SloKey, **said: object) -> dict[str, Any]:
    """The section qrm for a strategy, which qrm takes as it is."""
    found = settings_of_strategy(key, said)
    assert found.unfollowed == ()
    section = found.settings.get("qrm", {})
    check(QrmSettings, section, where="qrm")
    return dict(section)


@pytest.mark.parametrize(
    ("said", "section"),
    [
        ({"policy": "auto"}, {"burst_percent": 100}),
        ({"policy": "cpuBurstOnly", "cpuBurstPercent": 40}, {"burst_percent": 40}),
        ({"policy": "cfsQuotaBurstOnly"}, {"burst_percent": 0}),
        ({"policy": "none", "cpuBurstPercent": 40}, {"burst_percent": 0}),
        ({"cpuBurstPercent": 40}, {}),
        ({}, {}),
    ],
)
def test_burst(said: dict[str, object], section: dict[str, Any]) -> None:
    assert qrm("cpu-burst-config", **said) == section
