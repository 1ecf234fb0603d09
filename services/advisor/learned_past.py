"""`LearnedPast` keeps what the policy has learned in a file, so that it goes on in the next life of the advisor."""

from collections.abc import Mapping
from typing import Any

import structlog

from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import Round
from shared.errors import Unavailable
from shared.ports import Past

log = structlog.get_logger()

KEEP_S = 600.0
"""Time between two writes; a kill loses what was learned since."""
MAX_PAST_BYTES = 4 << 20


class LearnedPast:
    """What one policy knew when the advisor was started, and the file where it is kept."""

    def __init__(self, file: Past | None) -> None:
        self._file, self._kept_at_s = file, 0.0
        self._states: Mapping[str, Any] = {}

    @property
    def states(self) -> Mapping[str, Any]:
        """What was recalled, by region."""
        return self._states

    def recall(self, policy: Policy[Any, Any], now_s: float, wall_s: float) -> None:
        """Read what this policy had learned; a life without a past is no reason not to begin."""
        self._kept_at_s, self._states = now_s, {}
        if self._file is None or policy.past is None:
            return
        try:
            text = self._file.read()
        except Unavailable as error:
            log.warning("past.not_recalled", why=str(error))
            return
        if text is None:
            return
        self._states, why = policy.past.states_of(text, wall_s)
        if why:
            log.warning("past.not_recalled", policy=policy.name, why=why)

    def keep(self, policy: Policy[Any, Any], done: Round, now_s: float, wall_s: float) -> None:
        """Write what was learned."""
        # Also where it fails: the next try is as far away.
        self._kept_at_s = now_s
        # Of the policy that was chosen alone: where canonical decided, the file stays as it is.
        if self._file is None or policy.past is None or done.policy != policy.name:
            return
        try:
            self._file.write(policy.past.text_of(done.states, wall_s))
        except Unavailable as error:
            log.warning("past.not_kept", why=str(error))

    def is_due(self, now_s: float) -> bool:
        """Whether the last write is long enough ago."""
        return now_s - self._kept_at_s >= KEEP_S
