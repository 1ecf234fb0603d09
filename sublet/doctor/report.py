"""Prints findings for people, one line each with the next step below, and for programs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

from sublet.doctor.finding import FindingRow, Verdict, has_problem

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_COLUMN, _CHECK = max(map(len, VERDICTS)) + 2, 21


def lines(rows: Sequence[FindingRow]) -> Iterator[str]:
    """The places one below the other, and a sum."""
    place = None
    for row in rows:
        if row.place != place:
            place = row.place
            yield place
        yield f"  {row.finding.verdict:<{_COLUMN}}{row.check:<{_CHECK}}{row.finding.said}"
        if row.finding.fix:
            yield f"  {'':<{_COLUMN}}{'':<{_CHECK}}-> {row.finding.fix}"
    yield _sum(rows)


def as_json(rows: Sequence[FindingRow]) -> dict[str, Any]:
    """All findings, and how many there are of each verdict."""
    return {
        "ok": not has_problem(rows),
        "verdicts": _verdicts(rows),
        "findings": [{"place": row.place, "check": row.check, **asdict(row.finding)} for row in rows],
    }


def _sum(rows: Iterable[FindingRow]) -> str:
    return ", ".join(f"{number} {verdict}" for verdict, number in _verdicts(rows).items())


def _verdicts(rows: Iterable[FindingRow]) -> dict[str, int]:
    found = Counter(row.finding.verdict for row in rows)
    return {verdict: found[verdict] for verdict in VERDICTS}
