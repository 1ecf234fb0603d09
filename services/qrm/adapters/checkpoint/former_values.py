"""The file of former values records what groups had before Sublet wrote to them; it is valid for one boot."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.qrm.adapters.checkpoint.envelope import read_sealed, sealed, set_aside
from services.qrm.core.checkpoint import FormerValue
from shared.adapters.files.replaced import write_whole
from shared.errors import Refused

FILE = "former-values.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    boot: str
    values: tuple[FormerValue, ...]


def _read(body: str) -> _Record:
    return _Record.model_validate_json(body)


class FormerValuesFile:
    """The former values of one node, in its state directory; see `services.qrm.ports.FormerValueStore`."""

    def __init__(self, state_dir: Path, boot: str) -> None:
        self._path, self._boot = state_dir / FILE, boot

    def load(self) -> Sequence[FormerValue]:
        """See the port."""
        instead = "everything that isolation may have written is given back as new groups have it"
        found = read_sealed(self._path, _read, instead=instead)
        aside = set_aside(self._path)
        # A life that died before it had a record again.
        if found is None and aside.exists():
            why = f"{self._path} is not there since {aside.name} was set aside"
            raise Refused(f"{why}: {instead}", reason="bad_checkpoint")
        # The groups of an earlier boot are gone, even if new ones have their names.
        return found.values if found is not None and found.boot == self._boot else ()

    def save(self, values: Sequence[FormerValue]) -> None:
        """See the port."""
        record = _Record(boot=self._boot, values=tuple(values))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: it has to outlive this process and not the machine, with which the groups end as well; a pass
        # must not wait for a busy disk.
        write_whole(self._path, sealed(record.model_dump_json()))
