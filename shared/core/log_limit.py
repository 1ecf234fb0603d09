"""`LogLimit` lets a trouble of one kind be said once in a while, with how many were held back."""

from dataclasses import dataclass, field

QUIET_S = 1.0
MAX_KINDS = 256


@dataclass(slots=True)
class LogLimit:
    """Counts by kind. A kind comes from this program, never from a message: there are few."""

    quiet_s: float = QUIET_S
    _said: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By kind, when it was last said and how many were held back since."""

    def may_say(self, kind: str, now_s: float) -> int | None:
        """How many of this kind were held back since it was last said; None: hold this one back too."""
        said_s, held_back = self._said.get(kind, (None, 0))
        if said_s is not None and now_s - said_s < self.quiet_s:
            self._said[kind] = (said_s, held_back + 1)
            return None
        if len(self._said) >= MAX_KINDS and kind not in self._said:
            # Forgetting only makes a line come sooner; growing without a bound would be worse.
            self._said.clear()
        self._said[kind] = (now_s, 0)
        return held_back
