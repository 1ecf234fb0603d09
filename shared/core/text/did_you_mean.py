"""A hint for a name that nobody knows: the one that was probably meant, or all that there are."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None where none is like it."""
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str:
    """Words for the end of an error; `otherwise` stands for the list of all names where none is like this one."""
    names = list(known)
    hint = closest(name, names)
    if hint is not None:
        return f"did you mean {hint!r}?"
    return f"known: {', '.join(names)}" if otherwise is None else otherwise
