"""The bandwidth loop bounds the memory bandwidth of classes, a pass a second, by the counters of resctrl's groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.qrm.core.resctrl.flow import ROOT
from services.qrm.core.resctrl.hardware import BANDWIDTH, Hardware
from services.qrm.core.resctrl.rates import CounterReading
from services.qrm.core.resctrl.schemata import line_to_write
from services.qrm.core.resctrl.shares import cache_group
from services.qrm.core.resctrl.steering import (
    GROUP_OF,
    SteeringPass,
    SteeringRules,
    SteeringState,
    in_units,
    memory_domains,
    steer,
)
from services.qrm.ports import CacheControl
from services.qrm.sections.resctrl import BandwidthSettings
from shared.core.cpus.topology import Topology
from shared.errors import Refused
from shared.ports import Clock

IDLE_S = 10.0
"""Seconds between two checks whether it was enabled."""
FOLDERS: Mapping[str, str] = {ROOT: "", **{name: cache_group(qos) for qos, name in GROUP_OF.items()}}
SHOWN = 4


@dataclass(slots=True)
class BandwidthLoop:
    """The one place that writes the bandwidth of steered classes; see `services.qrm.ports.BandwidthSteering`."""

    control: CacheControl
    topology: Callable[[], Topology]
    clock: Clock
    _state: SteeringState = field(default_factory=SteeringState)

    async def run(self, settings: Callable[[], BandwidthSettings | None], report: Callable[[str], None]) -> None:
        """See the port."""
        while True:
            now = settings()
            if now is None:
                # Measurements before a pause say nothing about settings after it.
                self._state = SteeringState()
            report("" if now is None else self.round(now.rules()))
            await self.clock.sleep(IDLE_S if now is None else now.period_s)

    def round(self, rules: SteeringRules) -> str:
        """Run one pass; what of it could not be done, and what is in force instead."""
        domains = memory_domains(self.topology())
        try:
            hardware = self.control.hardware()
            if hardware is None or hardware.bandwidth is None or not hardware.counts or not domains:
                return f"{_lack(hardware)}: the percents of qrm.resctrl hold"
            found = steer(self._state, self._reading(), domains, rules)
            self._state = found.state
            for group, plan in found.plan.items():
                self._write(
                    FOLDERS[group], in_units(plan, domains, hardware.bandwidth, rules.quota.capacity_mb), hardware
                )
        except (OSError, Refused) as error:
            return f"{error}: what is set stays"
        return _silence(found, rules)

    def _reading(self) -> CounterReading:
        there = {"", *self.control.groups()}
        counters = {group: self.control.counters(folder) for group, folder in FOLDERS.items() if folder in there}
        return CounterReading(self.clock.monotonic(), counters)

    def _write(self, folder: str, values: Mapping[int, int], hardware: Hardware) -> None:
        line = line_to_write(BANDWIDTH, values, self.control.schemata(folder) or {}, hardware) if values else None
        if line is not None:
            self.control.write(folder, line)


def _lack(hardware: Hardware | None) -> str:
    if hardware is None:
        return "resctrl is not mounted"
    if hardware.bandwidth is None:
        return hardware.lacks[BANDWIDTH]
    return (
        "mbm_local_bytes and mbm_total_bytes are not counted here" if not hardware.counts else "L3 caches are not known"
    )


def _silence(found: SteeringPass, rules: SteeringRules) -> str:
    if not found.silent:
        return ""
    more = len(found.silent) - SHOWN
    named = ", ".join(found.silent[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    who = ", ".join(sorted(rules.throttled))
    return (
        f"no figure for {named}: what is set there stays for {rules.hold_s:g} s, then {who} has the least,"
        f" {rules.plan.least_ccd_mb} MB/s"
    )
