"""What a simulator must remember across a kill of its process: the time, finished steps, its pods' loads."""

from pathlib import Path

import structlog
from pydantic import Field

from shared.adapters.files.replaced import replace_file
from shared.adapters.local.pod_folder import read_json
from shared.contracts.envelope import MessagePart
from shared.contracts.ids import PodUid

NAME = "sim.json"
log = structlog.get_logger()


class AddedCommand(MessagePart):
    """A further command in a running container, and since when it runs."""

    container: str
    command: tuple[str, ...]
    since_s: float


class PodProgress(MessagePart):
    """Since when a pod runs, what was added to it, and whether the scenario started it."""

    since_s: float = 0.0
    of_scenario: bool = False
    added: tuple[AddedCommand, ...] = ()


class SimProgress(MessagePart):
    """Where a simulation stands; times are seconds of its own clock."""

    scenario: str = ""
    """Which scenario: its steps' digest. Another one begins anew."""
    time_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    steps: int = Field(default=0, ge=0)
    """Steps that are done, over all rounds."""
    pods: dict[PodUid, PodProgress] = {}

    def with_pod(self, uid: str, pod: PodProgress) -> "SimProgress":
        """The same with this pod in it."""
        return self.model_copy(update={"pods": {**self.pods, uid: pod}})

    def without_pod(self, uid: str) -> "SimProgress":
        """The same without this pod."""
        return self.model_copy(update={"pods": {other: pod for other, pod in self.pods.items() if other != uid}})


def read_progress(path: Path) -> SimProgress:
    """The progress of an earlier life; none where there was none, or its file cannot be used."""
    try:
        return SimProgress.model_validate(read_json(path))
    except FileNotFoundError:
        return SimProgress()
    except (OSError, ValueError) as error:
        # A story that begins anew is better than a machine that does not start.
        log.warning("progress.unreadable", file=str(path), why=" ".join(str(error).split()))
        return SimProgress()


def write_progress(path: Path, progress: SimProgress) -> None:
    """Keep the progress for the next life.

    Raises:
        Unavailable: it cannot be written.
    """
    replace_file(path, progress.model_dump_json().encode(), what="progress of the simulator")
