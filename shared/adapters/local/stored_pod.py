"""`StoredPod` holds what was asked for a pod of the local runtime, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from shared.adapters.local.pod_folder import FINISHED, PodFolder
from shared.contracts.envelope import MessagePart
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord


class ContainerStatus(MessagePart):
    """The status of one container; `exit_code` 128 + n means ended by signal n."""

    pid: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""


class PodStatus(MessagePart):
    """The status of a pod. `reason` is one word ("Evicted", "Deleted"), `message` a sentence for people."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed"] = "Pending"
    terminating: bool = False
    reason: str = ""
    message: str = ""
    grace_s: float | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    terminating_at: datetime | None = None
    ended_at: datetime | None = None
    containers: dict[str, ContainerStatus] = {}

    @property
    def finished(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in FINISHED


@dataclass(frozen=True)
class StoredPod:
    """A pod in the store."""

    folder: PodFolder
    record: PodRecord
    status: PodStatus

    @property
    def pod(self) -> Pod:
        """Return the pod with its current phase."""
        return self.record.pod.model_copy(update={"phase": self.status.phase, "terminating": self.status.terminating})
