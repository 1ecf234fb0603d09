"""The checkpoint's file is replaced atomically, in the envelope of `services.qrm.adapters.checkpoint.envelope`."""

from collections.abc import Mapping
from pathlib import Path

from services.qrm.adapters.checkpoint.envelope import read_sealed, sealed
from services.qrm.core.checkpoint import Checkpoint, same_after_restart
from shared.adapters.files.replaced import write_whole
from shared.contracts.advice import PoolAdvice

FILE = "checkpoint.json"


class CheckpointFile:
    """The checkpoint of one node, in its state directory."""

    def __init__(self, state_dir: Path, node: str) -> None:
        self._path, self._node = state_dir / FILE, node
        self._last: Checkpoint | None = None

    def save(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str] | None = None) -> None:
        """Replace the checkpoint if something in it has changed.

        Raises:
            OSError: it could not be written; the old one stays.
        """
        # Advice repeats with each sample, and each save waits for the disk.
        if self.holds(advice, pools, pods):
            return
        fresh = Checkpoint(node=self._node, advice=advice, pools=dict(pools), pods=dict(pods or {}))
        text = sealed(fresh.model_dump_json())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Synced before it is renamed: after a power cut there is the old checkpoint or the new one, never half of one.
        write_whole(self._path, text, durable=True)
        self._last = fresh

    def holds(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str] | None = None) -> bool:
        """Whether a restart would find the same already."""
        last = self._last
        same = last is not None and (last.pools, last.pods) == (pools, pods or {})
        return last is not None and same and same_after_restart(last.advice, advice)

    def load(self) -> Checkpoint | None:
        """Return the checkpoint; None if there is none.

        Raises:
            Refused: it is damaged, of another version, or another node's; it has been set aside under another name.
            OSError: it cannot be read, or not be set aside.
        """
        self._last = read_sealed(self._path, self._checked, instead="rebuilt from the kernel")
        return self._last

    def _checked(self, body: str) -> Checkpoint:
        checkpoint = Checkpoint.model_validate_json(body)
        # A state folder that was copied from another machine names CPUs that mean something else here.
        if checkpoint.node != self._node:
            raise ValueError(f"it belongs to node {checkpoint.node!r}, this is {self._node!r}")
        return checkpoint
