"""Records the values that groups had before Sublet wrote to them: recorded before the write, restored at the end.

A process may die between any two lines, and its writes outlive it, so the record must exist before the write. A record
of a value that was never changed does no harm: restoring it changes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.wanted import Key
from services.qrm.ports import FormerValueStore
from shared.core.cgroups.knobs import Knob

DeviceKey = tuple[str, Knob, str]
"""Group, knob and device number; that is empty where the knob has one value."""


@dataclass(slots=True)
class FormerValues:
    """The record of this node; without a store it belongs to this process alone."""

    store: FormerValueStore | None = None
    exists: Callable[[str], bool] = lambda _group: True
    """Whether a group exists; values of a group that has ended are dropped with the next write."""
    _found: dict[DeviceKey, FormerValue] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything may be in force that is to be given back."""
        return bool(self._found)

    def resume(self) -> None:
        """Take up the record of the life before.

        Raises:
            Refused: it is damaged.
            OSError: it cannot be read.
        """
        if self.store is not None:
            self._found = {(one.group, one.knob, one.device): one for one in self.store.load()}

    def of(self, knobs: Collection[Knob]) -> Mapping[Key, FormerValue]:
        """Return the recorded values of these knobs."""
        return {key[:2]: one for key, one in self._found.items() if key[1] in knobs and not key[2]}

    def of_devices(self, knobs: Collection[Knob]) -> Mapping[DeviceKey, FormerValue]:
        """Return the recorded values of knobs that have a value per device."""
        return {key: one for key, one in self._found.items() if key[1] in knobs}

    def record(self, fresh: Iterable[FormerValue]) -> None:
        """Record values, replacing those of the same group and knob.

        Raises:
            OSError: the values are not recorded, so nothing may be written.
        """
        changed = {(one.group, one.knob, one.device): one for one in fresh}
        if any(self._found.get(key) != one for key, one in changed.items()):
            self._save({**{key: one for key, one in self._found.items() if self.exists(key[0])}, **changed})

    def adopt(self, found: Iterable[FormerValue]) -> None:
        """Record values where none are recorded, and write the file even if there are none, so that it is complete
        again.

        Raises:
            OSError: the record is not written.
        """
        self._save({**{(one.group, one.knob, one.device): one for one in found}, **self._found})

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop values that were restored.

        Raises:
            OSError: the values stay on record.
        """
        self.forget_devices((*key, "") for key in keys)

    def forget_devices(self, keys: Iterable[DeviceKey]) -> None:
        """Drop values of devices that were restored.

        Raises:
            OSError: the values stay on record.
        """
        gone = self._found.keys() & set(keys)
        if gone:
            self._save({key: one for key, one in self._found.items() if key not in gone})

    def _save(self, found: dict[DeviceKey, FormerValue]) -> None:
        if self.store is not None:
            self.store.save(list(found.values()))
        self._found = found
