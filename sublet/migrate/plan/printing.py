"""Prints a plan, and the resulting file of values."""

import json
from pathlib import Path
from typing import Any

from shared.adapters.files.replaced import replace_file
from shared.errors import Conflict
from shared.text_file import read_text
from sublet.migrate.plan.line import MigrationPlan, PlanLine
from sublet.output import as_yaml, columns

HEAD = ("object", "field", "value", "effect", "here")
MODE = 0o644
LONGEST = 60
"""Characters of a value in a table that is not wide."""


def plan_table(plan: MigrationPlan, *, wide: bool) -> str:
    """A row for each line: of what is not taken over as it is, what is to be done."""
    rows = [_row(line, wide=wide) for line in plan.lines]
    return columns((*HEAD, "note"), rows)


def _row(line: PlanLine, *, wide: bool) -> list[str]:
    value = "" if line.given is None else _word(line.given)
    if len(value) > LONGEST and not wide:
        value = f"{value[: LONGEST - 1]}…"
    here = f"{line.key}: {_word(line.setting)}" if line.key else ""
    return [line.source, line.given_key, value, line.effect, here, line.note]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def summary(plan: MigrationPlan) -> str:
    """How many lines there are of each kind."""
    counts = {"maps": "map", "later": "map later", "kept": "need nothing", "off": "are off there",
              "nothing": "have no counterpart", "wrong": "cannot be used"}  # fmt: skip
    found = [(sum(line.effect == effect for line in plan.lines), words) for effect, words in counts.items()]
    return f"{len(plan.lines)} values: " + ", ".join(f"{count} {words}" for count, words in found if count)


def values_text(plan: MigrationPlan) -> str:
    """The file for `helm install -f`."""
    later = as_yaml(plan.later).splitlines() if plan.later else []
    head = [f"# Values for Sublet's chart, from what {plan.system} has (sublet migrate {plan.system} plan)."]
    tail = ["# Once the other system no longer does these:", *later]
    return "\n".join([*head, as_yaml(plan.values), *(f"# {line.removeprefix('# ')}" for line in tail if later), ""])


def write_values(path: Path, text: str) -> None:
    """Write the file of values; one that is there stays, unless it says the same.

    Raises:
        Conflict: another file is there.
        Unavailable: it cannot be written.
    """
    if path.exists() and read_text(path, what="--values") != text:
        raise Conflict(f"--values {path}: is there already and says something else; name another file, or remove it",
                       reason="exists")  # fmt: skip
    replace_file(path, text.encode(), what="--values", mode=MODE)
