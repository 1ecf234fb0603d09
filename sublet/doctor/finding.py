"""The finding of a check: a verdict, one line with the reason, and one with the next step. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

Verdict = Literal["ok", "warning", "problem", "not checked"]

T = TypeVar("T")
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be had, and why: no check takes it for a good one."""

    why: str


Known: TypeAlias = T | Unknown


@dataclass(frozen=True, slots=True)
class Finding:
    """One line for people; `fix` is empty where there is nothing to do."""

    verdict: Verdict
    said: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with the place and the check that it is of."""

    place: str
    """What was looked at: `node NAME` or `cluster`."""
    check: str
    finding: Finding


Checks: TypeAlias = Mapping[str, Callable[[F], Finding]]
"""Checks by name, in the order in which they are told."""


def ok(said: str) -> Finding:
    """Nothing to do."""
    return Finding("ok", said)


def warning(said: str, fix: str) -> Finding:
    """Sublet works, with less than it could have."""
    return Finding("warning", said, fix)


def problem(said: str, fix: str) -> Finding:
    """Sublet does not work, or does not protect its tenants, before this is mended."""
    return Finding("problem", said, fix)


def unchecked(why: str | Unknown, fix: str = "") -> Finding:
    """Could not be judged; says why, and how it could be."""
    return Finding("not checked", why.why if isinstance(why, Unknown) else why, fix)


def examine(place: str, checks: Checks[F], facts: F) -> list[FindingRow]:
    """Every check, once."""
    return [FindingRow(place, name, check(facts)) for name, check in checks.items()]


def demanded(rows: Sequence[FindingRow]) -> list[FindingRow]:
    """The findings where each check has to be made: one that was not is a problem."""
    return [
        FindingRow(row.place, row.check, problem(f"not checked: {row.finding.said}", row.finding.fix))
        if row.finding.verdict == "not checked"
        else row
        for row in rows
    ]


def has_problem(rows: Sequence[FindingRow]) -> bool:
    """Whether there is a problem among the findings."""
    return any(row.finding.verdict == "problem" for row in rows)


def counted(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int = 3) -> str:
    """Names for a line: the first few, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
