"""Messages of a command on standard error: one line each, prefixed with the name of the program."""

import sys

from sublet.invocation import program_name
from sublet.output import printable

MAX_ERROR_CHARS = 2000
"""A line that quotes a value of any size stays readable."""


def error_line(message: object) -> str:
    """One line of an error or a warning, without characters that steer a terminal."""
    text = " ".join(printable(line.strip()) for line in str(message).splitlines() if line.strip())
    if len(text) > MAX_ERROR_CHARS:
        text = f"{text[:MAX_ERROR_CHARS]}…"
    return f"{program_name(sys.argv[0])}: {text}"


def print_error(message: object) -> None:
    """Say why something is not done, or what to mind."""
    print(error_line(message), file=sys.stderr)
