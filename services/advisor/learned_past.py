"""`LearnedPast` keeps what the policy has learned, so that neither a round of another policy nor a restart costs it.

In memory it holds the newest state of each region; a file has them for the next life of the advisor.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog

from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import Round
from services.advisor.core.round.guard import RAISED
from shared.errors import Refused, Unavailable
from shared.ports import Past

log = structlog.get_logger()
T = TypeVar("T")

KEEP_S = 600.0
"""Time between two writes; a kill loses what was learned since."""
MAX_PAST_BYTES = 4 << 20
MOST_STATES = 256
"""Most regions whose state is kept: the last ones that were judged."""
_SHOWN_CHARACTERS = 200


class LearnedPast:
    """What one policy has learned about each region, and the file that stores it."""

    def __init__(self, file: Past | None) -> None:
        self._file, self._kept_at_s = file, 0.0
        self._states: Mapping[str, Any] = {}
        self._is_news = False

    @property
    def states(self) -> Mapping[str, Any]:
        """The newest state of each region, or what was recalled of it."""
        return self._states

    def learn(self, policy: Policy[Any, Any], done: Round) -> None:
        """Adopt the states of a round that this policy decided; a round of another policy says nothing about them."""
        if policy.past is None or done.policy != policy.name:
            return
        newest = done.states
        away = [(name, state) for name, state in self._states.items() if name not in newest]
        self._states, self._is_news = dict([*away, *newest.items()][-MOST_STATES:]), True

    def recall(self, policy: Policy[Any, Any], now_s: float, wall_s: float) -> None:
        """Read what this policy had learned; a life without a past is no reason not to begin."""
        self._kept_at_s, self._states, self._is_news = now_s, {}, False
        if self._file is None or policy.past is None:
            return
        try:
            text = self._file.read()
        except Unavailable as error:
            log.warning("past.not_recalled", why=str(error))
            return
        if text is None:
            return
        states_of = policy.past.states_of
        try:
            self._states, why = _guarded(lambda: states_of(text, wall_s))
        except Refused as refusal:
            why = str(refusal)
        if why:
            log.warning("past.not_recalled", policy=policy.name, why=why)

    def save(self, policy: Policy[Any, Any], now_s: float, wall_s: float) -> None:
        """Write what was learned since the last write; if nothing was, leave the file and its age unchanged."""
        # Also where it fails: the next try is as far away.
        self._kept_at_s = now_s
        if self._file is None or policy.past is None or not self._is_news:
            return
        text_of = policy.past.text_of
        try:
            self._file.write(_guarded(lambda: text_of(self._states, wall_s)))
        except (Refused, Unavailable) as error:
            log.warning("past.not_kept", policy=policy.name, why=str(error))
            return
        self._is_news = False

    def is_due(self, now_s: float) -> bool:
        """Whether the last write is long enough ago."""
        return now_s - self._kept_at_s >= KEEP_S


def _guarded(call: Callable[[], T]) -> T:
    """Call a policy's function and return its result.

    Raises:
        Refused: `policy_raised`.
    """
    try:
        return call()
    except Exception as error:  # a policy of a wheel: whatever it is, the advisor goes on
        raise Refused(f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS], reason=RAISED) from error
