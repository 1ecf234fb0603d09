"""The rules that follow from the settings are worked out once, and not in each pass."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.rules import NodeRules
from services.qrm.core.starting import StartRules
from services.qrm.settings import QrmSettings


@dataclass(frozen=True, slots=True)
class MachineRules:
    """What the core takes of the settings on one machine."""

    quota_burst: QuotaBurstRules
    starts: StartRules
    isolation: NodeRules


class SettingsRules:
    """Keeps the rules of the last settings and machine that were asked for."""

    def __init__(self) -> None:
        self._asked: tuple[QrmSettings, int, int] | None = None
        self._rules: MachineRules

    def of(self, settings: QrmSettings, cpus: int, memory_bytes: Mapping[int, int]) -> MachineRules:
        """Return the rules of these settings on a machine with so many CPUs and the memory of these NUMA nodes."""
        last, machine_bytes = self._asked, sum(memory_bytes.values())
        # By identity: to compare settings costs as much as to work out their rules.
        if last is None or last[0] is not settings or last[1:] != (cpus, machine_bytes):
            self._rules = MachineRules(
                settings.quota_burst.rules(), settings.starts.rules(cpus), settings.isolation_rules(machine_bytes)
            )
            self._asked = (settings, cpus, machine_bytes)
        return self._rules
