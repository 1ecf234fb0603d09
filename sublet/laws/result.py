"""The result of a law, and the location of the cause in an author's file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sublet.laws.place import line_at_work

MAX_CASE = 4000
"""Characters of a case that are printed."""


@dataclass(frozen=True, slots=True)
class LawResult:
    """Whether an extension holds a law."""

    law: str
    holds: bool
    case: str = ""
    """Of a broken law: what was found, and by which input."""
    where: str = ""
    """Of a broken law: file and line, where they are known."""


class BrokenLaw(AssertionError):
    """A law that does not hold, and the author's function that is to blame for it."""

    def __init__(self, function: Callable[..., Any], words: str) -> None:
        super().__init__(words)
        self.function = function


def broken_result(law: str, error: BaseException, file: str) -> LawResult:
    """The result of a law that ended with this error, by an extension of this file.

    Of a group it is the first error; hypothesis prints the smallest case into an error's notes.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = str(error) if isinstance(error, BrokenLaw) else f"{type(error).__name__}: {error}".removesuffix(": ")
    case = "\n".join([said, *getattr(error, "__notes__", ())])[:MAX_CASE]
    return LawResult(law, holds=False, case=case, where=_place(error, file))


def _place(error: BaseException, file: str) -> str:
    code = getattr(error.function, "__code__", None) if isinstance(error, BrokenLaw) else None
    return line_at_work(error, file) or (f"{code.co_filename}:{code.co_firstlineno}" if code else "")
