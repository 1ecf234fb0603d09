"""`PodsFile` keeps the node's pods in one file for the services that have no access to the API server.

One service has the credentials and writes; the others read, and need neither the API server nor the bus: a node that is
cut off continues with the pods that kubelet keeps running. A file that was never written is not an empty list: nothing
is known then.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from shared.adapters.files.replaced import replace_file
from shared.contracts.pod import Pod
from shared.errors import Unavailable

NAME = "node-pods.json"
_PODS = TypeAdapter(tuple[Pod, ...])


class PodsFile:
    """A PodSource over `<state_dir>/node-pods.json`, and its writer."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / NAME
        self._name = str(self.path)
        self._written: bytes | None = None

    def write(self, pods: Sequence[Pod]) -> None:
        """Replace the list if it has changed.

        Raises:
            Unavailable: the folder cannot be written; the last list stays.
        """
        ordered = tuple(sorted(pods, key=lambda pod: (pod.key, pod.uid)))
        text = _PODS.dump_json(ordered, exclude_defaults=True)
        # A new file is a new generation, and that wakes the services that read it.
        if text != self._written:
            replace_file(self.path, text, what="pods of this node")
            self._written = text

    def pods(self) -> Sequence[Pod]:
        """Pods that hold resources, ascending by namespace/name.

        Raises:
            Unavailable: never written, or cannot be read.
        """
        try:
            pods = _PODS.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            raise Unavailable(
                f"{self.path}: not written yet; the reporter writes it once the API server has listed the pods",
                reason="not_listed",
            ) from None
        except (OSError, ValidationError, json.JSONDecodeError) as error:
            raise Unavailable(f"{self.path}: cannot be read: {error}", reason="unreadable") from error
        return [pod for pod in pods if pod.phase in ("Pending", "Running")]

    def generation(self) -> int:
        """Changes with every list written; 0 before the first.

        Raises:
            Unavailable: the folder cannot be read.
        """
        try:
            status = os.stat(self._name)  # noqa: PTH116 - asked many times a second
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror}", reason="unreadable") from error
        # Older kernels' clocks of files stand still for 4 ms: two lists of one moment are different files.
        return (status.st_mtime_ns << 64) + status.st_ino
