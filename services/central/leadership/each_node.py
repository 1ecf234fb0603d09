"""Work node by node: a node that fails is logged, waits before its next try, and delays no other node."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

import structlog

from services.central.leadership.leader import NotLeading
from shared.core.backoff import delay_s
from shared.errors import SubletError, Unavailable
from shared.ports import Clock

log = structlog.get_logger()

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
AWAY_AFTER = 3
"""After so many nodes in a row without an answer the server counts as away, and the other nodes are not tried."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The result of the last attempts for a node."""

    why: str
    tries: int
    due_at_s: float


class EachNode:
    """One kind of work, node by node; `what` names it in the log."""

    def __init__(self, clock: Clock, what: str) -> None:
        self._clock, self._what = clock, what
        self._failed: dict[str, _Failure] = {}

    @property
    def failures(self) -> dict[str, str]:
        """Why the work on a node failed, by node, for those whose newest try did."""
        return {node: failure.why for node, failure in self._failed.items()}

    @property
    def due_in_s(self) -> float | None:
        """Seconds until the next try of one that failed; None while none has."""
        due_at_s = min((failure.due_at_s for failure in self._failed.values()), default=None)
        return None if due_at_s is None else max(0.0, due_at_s - self._clock.monotonic())

    def retain(self, nodes: Collection[str]) -> None:
        """Forget all others: what is gone will not be tried again."""
        for gone in self._failed.keys() - set(nodes) if self._failed else ():
            del self._failed[gone]

    async def each(self, nodes: Sequence[str], work: Callable[[str], Awaitable[object]]) -> None:
        """Do the work for these nodes, in their order, but for those that must wait.

        Raises:
            NotLeading: another central leads.
            Unavailable: several in a row had no answer.
        """
        unanswered = 0
        for node in nodes:
            failure = self._failed.get(node)
            # Not counted as unanswered: it was not asked.
            if failure is not None and self._clock.monotonic() < failure.due_at_s:
                continue
            try:
                await work(node)
            # No node's fault, and true for all of them.
            except NotLeading:
                raise
            except SubletError as error:
                self._note(node, error)
                unanswered = unanswered + 1 if isinstance(error, Unavailable) else 0
                if unanswered >= AWAY_AFTER:
                    raise Unavailable(str(error), reason=error.reason) from error
            else:
                unanswered = 0
                self._failed.pop(node, None)

    def _note(self, node: str, error: SubletError) -> None:
        before = self._failed.get(node)
        tries = before.tries + 1 if before else 0
        wait_s = delay_s(tries, base_s=FIRST_WAIT_S, cap_s=LONGEST_WAIT_S, roll=1.0)
        self._failed[node] = _Failure(str(error), tries, self._clock.monotonic() + wait_s)
        # Once for each reason: a node that refuses for a day is one line, not thousands.
        if before is None or before.why != str(error):
            log.warning("node.not_done", what=self._what, node=node, why=str(error), again_in_s=wait_s)
