"""What differs between a decision that was recorded and the same decided anew."""

from collections.abc import Iterator

from shared.contracts.cluster.decision import Decided
from shared.contracts.envelope import Reason

MAX_DIFFERENCES = 8
"""Of one decision that are named."""
_NAMES = ("node", "container", "resource", "key")
"""Figures that say what a reason is about."""


def differences(recorded: Decided, replayed: Decided) -> list[str]:
    """Verdict, rules and figures that are not the same, each with both values; words are made of them, and left out."""
    found = list(_differences(recorded, replayed))
    more = len(found) - MAX_DIFFERENCES
    return found if more <= 0 else [*found[:MAX_DIFFERENCES], f"{more} more"]


def _differences(recorded: Decided, replayed: Decided) -> Iterator[str]:
    if recorded.verdict != replayed.verdict:
        yield f"verdict: recorded {recorded.verdict}, now {replayed.verdict}"
    before, now = ({_about(one): one for one in decided.why} for decided in (recorded, replayed))
    for about in sorted(before.keys() | now.keys()):
        where = " ".join(about)
        if about not in now:
            yield f"{where}: recorded, not now"
        elif about not in before:
            yield f"{where}: not recorded, now"
        else:
            yield from _figures(where, before[about], now[about])


def _about(reason: Reason) -> tuple[str, ...]:
    return (reason.rule, *(str(reason.numbers[name]) for name in _NAMES if name in reason.numbers))


def _figures(where: str, before: Reason, now: Reason) -> Iterator[str]:
    for name in sorted(before.numbers.keys() | now.numbers.keys()):
        old, new = before.numbers.get(name), now.numbers.get(name)
        if old != new:
            yield f"{where}: {name}: recorded {old}, now {new}"
