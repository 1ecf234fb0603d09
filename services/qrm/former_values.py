"""Former values are what groups had before Sublet wrote to them: on record before the write, given back at the end.

A process may die between any two lines. What it wrote outlives it, so the record has to be there first; where it says
more than was written, giving back changes nothing.
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
    """The record of this node; without a store it is this process's alone."""

    store: FormerValueStore | None = None
    exists: Callable[[str], bool] = lambda _group: True
    """Whether a group is there: what is known of one that has ended is dropped with the next write."""
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
        """What is on record of these knobs."""
        return {key[:2]: one for key, one in self._found.items() if key[1] in knobs and not key[2]}

    def of_devices(self, knobs: Collection[Knob]) -> Mapping[DeviceKey, FormerValue]:
        """What is on record of knobs that have a value for each device."""
        return {key: one for key, one in self._found.items() if key[1] in knobs}

    def record(self, fresh: Iterable[FormerValue]) -> None:
        """Put values on record, in place of what it said of the same group and knob.

        Raises:
            OSError: they are not on record, so nothing may be written there.
        """
        changed = {(one.group, one.knob, one.device): one for one in fresh}
        if any(self._found.get(key) != one for key, one in changed.items()):
            self._save({**{key: one for key, one in self._found.items() if self.exists(key[0])}, **changed})

    def adopt(self, found: Iterable[FormerValue]) -> None:
        """Put values on record where nothing is said yet, and write it also where there are none: it is whole again.

        Raises:
            OSError: the record is not written.
        """
        self._save({**{(one.group, one.knob, one.device): one for one in found}, **self._found})

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop what has been given back.

        Raises:
            OSError: the record still says it, and so does this.
        """
        self.forget_devices((*key, "") for key in keys)

    def forget_devices(self, keys: Iterable[DeviceKey]) -> None:
        """As `forget`.

        Raises:
            OSError: the record still says it, and so does this.
        """
        gone = self._found.keys() & set(keys)
        if gone:
            self._save({key: one for key, one in self._found.items() if key not in gone})

    def _save(self, found: dict[DeviceKey, FormerValue]) -> None:
        if self.store is not None:
            self.store.save(list(found.values()))
        self._found = found
