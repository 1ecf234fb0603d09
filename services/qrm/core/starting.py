"""Decides which reclaimed pods, whose containers are being started, keep kubelet's weight and width.

The runtime's own work for a container (its init, in namespaces and locks that others wait for) runs in the container's
group. At the lowest weight, on the one CPU that another program uses, this work takes minutes, and everything that
needs the same locks waits as long: the runtime, kubelet, and through them the starts of tenants. A pod therefore gets
the lowest weight only after its containers run.

This must not be a way to run as a tenant. A pod in which a process of its own runs is counted: only a bounded number at
a time, and each, by its UID, only for a bounded time and CPU time in its whole life, including restarts and init
containers.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

Holds = Literal["nothing", "runtime", "own"]
"""What a container's group holds: no process, only the runtime's before it becomes the container's, or the
container's."""
StartProgress = Literal["waiting", "starting", "started"]
"""waiting: only its sandbox runs, which sleeps; starting: the runtime works on it; started: all containers run, or
an init container does its work."""


@dataclass(frozen=True, slots=True)
class StartRules:
    """What starting pods may have."""

    most: int
    """Pods at a time; 0: no pod ever keeps what kubelet gave it."""
    each_s: float
    """Seconds that each pod may be starting."""
    each_cpu_s: float
    """CPU time that each pod may use until it has started."""


@dataclass(frozen=True, slots=True)
class PodStart:
    """One reclaimed pod as the kernel shows it; `cpu_s` is all CPU time of its life, None: not known."""

    key: str
    progress: StartProgress
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class _Account:
    """The part of its budget that a pod has used up, as of the last look at it."""

    at_s: float
    last: PodStart
    kept: bool = False
    spent_s: float = 0.0
    spent_cpu_s: float = 0.0


def progress(inside: Mapping[str, Holds], staying: Collection[str | None], preparing: Collection[str]) -> StartProgress:
    """Return how far the start of a pod is.

    Args:
        inside: what each group below the pod's holds; one of them is the sandbox's, with most runtimes.
        staying: the groups of the containers that stay, None for each whose group is not known yet.
        preparing: the known groups of init containers that end.
    """
    own = {group for group, holds in inside.items() if holds == "own"}
    # More groups at work than containers stay: the sandbox's and all of theirs, whether or not each is known by name.
    if own & set(preparing) or len(own) > len(staying) or own.issuperset(staying):
        return "started"
    # One group alone is the sandbox's, whose process only sleeps.
    return "starting" if "runtime" in inside.values() or len(own) > 1 else "waiting"


@dataclass(slots=True)
class Starts:
    """The budgets of the present pods, by UID. Times are seconds of one monotonic clock."""

    _accounts: dict[str, _Account] = field(default_factory=dict)

    def exempt(self, seen: Mapping[str, PodStart], rules: StartRules, now_s: float) -> frozenset[str]:
        """UIDs of the pods that keep what kubelet gave them, until they are looked at again.

        A waiting pod takes nothing from others and is not counted. Pods that were exempt before go first, then by name.
        """
        # Built from the present pods: accounts of ended ones are dropped, and a new UID starts from zero.
        accounts = {uid: _charged(self._accounts.get(uid), start, now_s) for uid, start in seen.items()}
        left = {uid for uid, account in accounts.items() if _has_left(account, rules)} if rules.most else set()
        # A pod that has begun continues: the lowest weight halfway would leave the runtime's locks held.
        order = sorted(left, key=lambda uid: (not accounts[uid].kept, seen[uid].key, uid))
        kept = {uid for uid in order if seen[uid].progress == "waiting"}
        kept |= set([uid for uid in order if seen[uid].progress == "starting"][: rules.most])
        self._accounts = {
            uid: _Account(now_s, account.last, uid in kept, account.spent_s, account.spent_cpu_s)
            for uid, account in accounts.items()
        }
        return frozenset(kept)


def _charged(account: _Account | None, start: PodStart, now_s: float) -> _Account:
    """Return the account after charging the pod's use since the last check, as far as it did not have the lowest
    weight."""
    if account is None:
        return _Account(now_s, start)
    # At the lowest weight it took nothing from others, so that is not charged.
    if not account.kept:
        return _Account(now_s, start, account.kept, account.spent_s, account.spent_cpu_s)
    # Either end of the span counts: a start shorter than the time between two looks is not free.
    worked_s = now_s - account.at_s if "starting" in (account.last.progress, start.progress) else 0.0
    # Never below 0: the counter restarts if the group was recreated, and must not give time back.
    used_cpu_s = max(0.0, (start.cpu_s or 0.0) - (account.last.cpu_s or 0.0))
    return _Account(now_s, start, account.kept, account.spent_s + worked_s, account.spent_cpu_s + used_cpu_s)


def _has_left(account: _Account, rules: StartRules) -> bool:
    """Return whether the pod still starts within its budget; an unknown use exhausts it."""
    known = account.last.progress != "started" and account.last.cpu_s is not None
    return known and account.spent_s < rules.each_s and account.spent_cpu_s < rules.each_cpu_s
