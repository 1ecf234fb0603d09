"""Background tasks run next to qrm's passes: memory offloading, bandwidth steering, checkpoints."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.qrm.conditions import Conditions
from services.qrm.ports import QrmPorts
from services.qrm.sections.resctrl import BandwidthSettings
from services.qrm.settings import OffloadSettings, QrmSettings
from shared.contracts.pod import Pod


@dataclass(frozen=True, slots=True)
class BackgroundWork:
    """The tasks that run until qrm is cancelled; each reads pods and settings when it needs them."""

    ports: QrmPorts
    conditions: Conditions
    pods: Callable[[], Sequence[Pod]]
    enforced: Callable[[], QrmSettings | None]
    """The settings, while this node enforces."""

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start each part as a separate task."""
        offloader = self.ports.offloader
        tasks.create_task(offloader.run(self.pods, self._offload), name="qrm-offloading")
        tasks.create_task(offloader.run_drops(self.pods), name="qrm-cache-drops")
        tasks.create_task(self.ports.bandwidth.run(self._bandwidth, self._steered), name="qrm-bandwidth")
        tasks.create_task(self.ports.checkpoints.run(self._checkpoint_written), name="qrm-checkpoints")

    def _offload(self) -> OffloadSettings | None:
        settings = self.enforced()
        return settings.offload if settings is not None and settings.offload.enabled else None

    def _bandwidth(self) -> BandwidthSettings | None:
        settings = self.enforced()
        return settings.resctrl.bandwidth if settings is not None and settings.resctrl.bandwidth.enabled else None

    def _steered(self, failure: str) -> None:
        self.conditions.set("BandwidthNotSteered", failure)

    def _checkpoint_written(self, failure: str) -> None:
        self.conditions.set("CheckpointFailed", failure)
        if not failure:
            self.conditions.set("CheckpointRefused", "")
