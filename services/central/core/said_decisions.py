"""Which decisions are worth saying: a controller comes to the same one in every pass."""

from dataclasses import dataclass, field

from shared.contracts.cluster.decision import Decided, DecidedObject

REPEAT_S = 60.0
"""The same verdict on the same object is not said again sooner, whatever its figures are now."""
UNCHANGED_S = 3600.0
"""Not even a word of it is another: said again so often, that it is there for as long as it holds."""
MAX_OBJECTS = 50_000
"""Of which it is known what was said of them last; of older ones it is said again."""

_Key = tuple[str, DecidedObject]


@dataclass(slots=True)
class SaidDecisions:
    """What was said last of each object, by area."""

    _said: dict[_Key, tuple[Decided, float]] = field(default_factory=dict)

    def news(self, decided: Decided, now_s: float) -> bool:
        """Whether it is to be said."""
        known = self._said.get((decided.area, decided.about))
        if known is None or known[0].verdict != decided.verdict:
            return True
        silent_s = now_s - known[1]
        return silent_s >= (UNCHANGED_S if known[0] == decided else REPEAT_S)

    def said(self, decided: Decided, now_s: float) -> None:
        """Remember that it was said."""
        key = (decided.area, decided.about)
        self._said.pop(key, None)
        if len(self._said) >= MAX_OBJECTS:
            # Dictionaries keep the order in which things were said: the oldest goes.
            del self._said[next(iter(self._said))]
        self._said[key] = decided, now_s

    def lost(self, decided: Decided) -> None:
        """Nobody has heard it: the next pass says it again."""
        key = (decided.area, decided.about)
        known = self._said.get(key)
        # What was decided since then is on its way.
        if known is not None and known[0] is decided:
            del self._said[key]


def shortened(decided: Decided) -> Decided | None:
    """The same with the first half of its reasons, for a message that is too long; None: it has none to leave out."""
    return decided.model_copy(update={"why": decided.why[: len(decided.why) // 2]}) if decided.why else None
