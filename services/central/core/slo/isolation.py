"""Settings of qrm that isolate pods as Koordinator's strategies say.

Facts: docs/facts/koordinator-isolation.md#cpu-burst.
"""

from typing import Any

from services.central.core.slo.keys import Strategy

FULL_PERCENT = 100
"""Most that a kernel of the mainline lets a container save up, of its quota."""


def burst(whole: Strategy, said: Strategy) -> dict[str, Any]:
    """What `cpu-burst-config` asks for: `whole` with what is built in, `said` without."""
    if whole["policy"] in ("cpuBurstOnly", "auto"):
        return {"qrm": {"burst_percent": min(FULL_PERCENT, whole["cpuBurstPercent"])}}
    # Off, where the ConfigMap itself says so, and not its silence.
    return {"qrm": {"burst_percent": 0}} if "policy" in said else {}
