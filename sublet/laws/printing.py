"""Prints the results of the laws, each line as soon as it is known."""

from collections.abc import Iterable
from dataclasses import asdict

import typer

from sublet.exit_codes import FAILED, OK
from sublet.laws.result import LawResult
from sublet.output import printable
from sublet.terminal.formats import OutputFormat, document_text


def print_results(noun: str, name: str, results: Iterable[LawResult], wanted: OutputFormat) -> int:
    """Print the results for an extension; gives the exit code."""
    seen = []
    for result in results:
        seen.append(result)
        if wanted.is_table:
            typer.echo(_text(result))
    broken = sum(not result.holds for result in seen)
    if wanted.is_table:
        typer.echo(f"{name}: {len(seen) - broken} of {len(seen)} laws hold")
    else:
        laws = [asdict(result) for result in seen]
        typer.echo(document_text({noun: name, "broken": broken, "laws": laws}, wanted))
    return FAILED if broken else OK


def _text(result: LawResult) -> str:
    if result.holds:
        return f"holds   {result.law}"
    case = f"{result.where}: {result.case}" if result.where else result.case
    return "\n        ".join([f"BROKEN  {result.law}", *map(printable, case.split("\n"))])
