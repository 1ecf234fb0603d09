"""Prints verdicts: a line per finding for people; one object for machines."""

from collections.abc import Mapping

from sublet.exit_codes import OK, REFUSED
from sublet.terminal.formats import OutputFormat, document_text
from sublet.terminal.stderr import print_error
from sublet.validation.findings import NEXT_STEP, Verdict


def print_verdicts(verdicts: Mapping[str, Verdict], output: OutputFormat) -> int:
    """Print what was found, by what was checked; the exit code."""
    wrong = [str(finding) for verdict in verdicts.values() for finding in verdict.findings]
    if not output.is_table:
        document = {"valid": not wrong, "checked": {name: _document(one) for name, one in verdicts.items()}}
        print(document_text(document, output))
        return REFUSED if wrong else OK
    for note in (note for verdict in verdicts.values() for note in verdict.notes):
        print_error(f"note: {note}")
    for line in wrong:
        print_error(line)
    if wrong:
        print_error(NEXT_STEP)
        return REFUSED
    print(f"valid: {', '.join(verdicts)}")
    return OK


def _document(verdict: Verdict) -> dict[str, object]:
    return {
        "findings": [{"at": one.place, "key": one.key, "message": one.message} for one in verdict.findings],
        "notes": list(verdict.notes),
    }
