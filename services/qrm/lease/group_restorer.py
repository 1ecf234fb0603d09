"""Restoring ends what enforcing has begun: a node that observes again has its groups as they were before Sublet.

Rule: docs/facts/safety-rules.md#rule-10-stopping-is-safe.
"""

from collections.abc import Sequence

import structlog

from services.qrm.conditions import Conditions
from services.qrm.ports import PodGroups, WatchedLease
from shared.contracts.pod import Pod

log = structlog.get_logger()

SETTLE_S = 1.0
"""The entries of a configuration come one after another, and only all of them say whether this node enforces."""


class GroupRestorer:
    """Restores the groups once after the node has stopped enforcing, and removes the lease last."""

    def __init__(self, groups: PodGroups, lease: WatchedLease | None, conditions: Conditions) -> None:
        self._groups, self._lease, self._conditions = groups, lease, conditions
        self.owed = lease is not None and lease.left_behind()
        """Whether something of qrm's may be in force, by this life of it or an earlier one."""
        self._since_s: float | None = None

    def enforced(self) -> None:
        """Something of qrm's is in force from now on."""
        self.owed, self._since_s = True, None
        self._conditions.set("NotRestored", "")
        self._conditions.set("QuotasRaised", "")

    def end_quotas(self, pods: Sequence[Pod]) -> None:
        """Bring raised quotas back; the first that stay raised are a condition."""
        try:
            left = [f"{problem.group}: {problem.why}" for problem in self._groups.end_quotas(pods)]
        except OSError as error:
            left = [str(error)]
        self._conditions.set("QuotasRaised", "; ".join(left[:3]))

    def leave(self, pods: Sequence[Pod]) -> None:
        """Restore what must not stay while no qrm runs here; the rest stays for the next run, or ends by itself."""
        self.end_quotas(pods)
        try:
            left = [f"{problem.group}: {problem.why}" for problem in self._groups.leave()]
        except OSError as error:
            left = [str(error)]
        if left:
            log.warning("devices.not_given_back", why="; ".join(left[:3]))

    def restore(self, pods: Sequence[Pod], now_s: float) -> None:
        """Restore what is owed, once the node has observed for a moment; what fails is tried again at the next pass."""
        if not self.owed:
            return
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < SETTLE_S:
            return
        problems = [f"{problem.group}: {problem.why}" for problem in self._groups.restore(pods)]
        self._conditions.set("NotRestored", "; ".join(problems[:3]))
        if problems:
            return
        # Last, because it is the mark that there is anything to restore: a crash before it repeats everything.
        if self._lease is not None:
            self._lease.remove()
        self.owed, self._since_s = False, None
        log.warning("groups.restored", pods=len(pods))
