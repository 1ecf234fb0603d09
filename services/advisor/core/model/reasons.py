"""`Reasons` are put into words when somebody reads them: an advice is published with them, a replay decides without."""

from collections.abc import Callable, Iterable, Sequence
from typing import overload

from shared.contracts.envelope import Reason


class Reasons(Sequence[Reason]):
    """Reasons that are built on first access. Their inputs must not change before that."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Iterable[Reason]]) -> None:
        self._make: Callable[[], Iterable[Reason]] | None = make
        self._made: tuple[Reason, ...] = ()

    def _all(self) -> tuple[Reason, ...]:
        if self._make is not None:
            self._made, self._make = tuple(self._make()), None
        return self._made

    @overload
    def __getitem__(self, index: int) -> Reason: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Reason, ...]: ...
    def __getitem__(self, index: int | slice) -> Reason | tuple[Reason, ...]:
        """One of them, or some."""
        return self._all()[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        """As the tuple of them."""
        return self._all() == (other._all() if isinstance(other, Reasons) else other)

    def __hash__(self) -> int:
        """As the tuple of them."""
        return hash(self._all())

    def __repr__(self) -> str:
        """As the tuple of them."""
        return repr(self._all())
