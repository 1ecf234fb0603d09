"""Which decisions are worth saying: a controller comes to the same one in every pass."""

from dataclasses import dataclass, field

from shared.contracts.cluster.decision import Decided, DecidedObject

REPEAT_S = 60.0
"""The same verdict on the same object is not repeated sooner, even with other figures."""
UNCHANGED_S = 3600.0
"""An identical decision is repeated this often, so that it is stored for as long as it holds."""
MAX_OBJECTS = 50_000
"""Most objects whose last decision is remembered; decisions on older ones are repeated."""

_Key = tuple[str, DecidedObject]


@dataclass(slots=True)
class SaidDecisions:
    """The last published decision of each object, by area."""

    _said: dict[_Key, tuple[Decided, float]] = field(default_factory=dict)

    def news(self, decided: Decided, now_s: float) -> bool:
        """Return whether it must be published."""
        known = self._said.get((decided.area, decided.about))
        if known is None or known[0].verdict != decided.verdict:
            return True
        silent_s = now_s - known[1]
        return silent_s >= (UNCHANGED_S if known[0] == decided else REPEAT_S)

    def said(self, decided: Decided, now_s: float) -> None:
        """Remember that it was published."""
        key = (decided.area, decided.about)
        self._said.pop(key, None)
        if len(self._said) >= MAX_OBJECTS:
            # Dictionaries keep insertion order: the oldest entry goes.
            del self._said[next(iter(self._said))]
        self._said[key] = decided, now_s

    def lost(self, decided: Decided) -> None:
        """Forget a decision that was lost, so that the next pass repeats it."""
        key = (decided.area, decided.about)
        known = self._said.get(key)
        # A newer decision is already on its way.
        if known is not None and known[0] is decided:
            del self._said[key]


def shortened(decided: Decided) -> Decided | None:
    """Return the same with the first half of its reasons, for a message that is too long; None: no reasons are left."""
    return decided.model_copy(update={"why": decided.why[: len(decided.why) // 2]}) if decided.why else None
