"""A law is a function of an extension and of generated input; it raises AssertionError if it is broken."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

E = TypeVar("E")
Law = Callable[[E], None]
Check = Callable[..., None]
Drawn = Mapping[str, Any]
"""The arguments of one case, by name."""


def law_of(laws: dict[str, Law[E]], *, examples: int = 100) -> Callable[..., Callable[[Check], Check]]:
    """What registers checks as laws, each under the sentence that its name is, with so many cases made up for it.

    `always` names cases that the law checks every time, so that a rare one is not left to chance.
    """

    def law(*, always: Sequence[Drawn] = (), **made_up: st.SearchStrategy[Any]) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            laws[check.__name__.replace("_", " ")] = _over(check, examples, made_up, always) if made_up else check
            return check

        return register

    return law


def _over(check: Check, examples: int, made_up: dict[str, st.SearchStrategy[Any]], always: Sequence[Drawn]) -> Law[E]:
    def run(extension: E) -> None:
        # A busy machine is no reason to fail.
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(**made_up)
        def holds(**drawn: Any) -> None:
            check(extension, **drawn)

        for case in always:
            holds = example(**case)(holds)
        holds()

    return run
