"""`--dry-run`: a command checks everything, says what it would change, and changes nothing."""

from typing import Annotated

import typer

DryRun = Annotated[bool, typer.Option("--dry-run", help="Check, say what would change, and change nothing.")]
MARK = "dry run"


def dry(words: str) -> str:
    """What is said of a change that is not made."""
    return f"{words} ({MARK})"
