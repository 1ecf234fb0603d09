"""`LogLimit` lets a problem of one kind be logged once in a while, with the number of suppressed repetitions."""

from dataclasses import dataclass, field

QUIET_S = 1.0
MAX_KINDS = 256


@dataclass(slots=True)
class LogLimit:
    """Counts by kind. A kind comes from this program, never from a message: there are few."""

    quiet_s: float = QUIET_S
    _said: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By kind, when it was last logged and how many were suppressed since."""

    def may_say(self, kind: str, now_s: float) -> int | None:
        """Return how many of this kind were suppressed since the last one; None: suppress this one too."""
        said_s, held_back = self._said.get(kind, (None, 0))
        if said_s is not None and now_s - said_s < self.quiet_s:
            self._said[kind] = (said_s, held_back + 1)
            return None
        if len(self._said) >= MAX_KINDS and kind not in self._said:
            # Forgetting only makes a line come sooner; growing without a bound would be worse.
            self._said.clear()
        self._said[kind] = (now_s, 0)
        return held_back
