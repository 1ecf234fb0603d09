"""Finds settings of a plan that Sublet would refuse: their lines say so, and lose the setting."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shared.core.text.yaml_text import YamlDocument
from sublet.migrate.plan.line import MigrationPlan, PlanLine, nested
from sublet.validation.findings import SettingFinding, validate_settings
from sublet.validation.given import Given

SETTINGS = "settings"


def within_bounds(plan: MigrationPlan) -> MigrationPlan:
    """The plan with every line whose setting is refused marked as wrong, with the bound."""
    lines: Sequence[PlanLine] = plan.lines
    # Each turn marks at least one line; what is refused together with a neighbour shows in the next one.
    for _ in plan.lines:
        findings = _findings(lines)
        marked = [_judged(line, findings) for line in lines]
        if marked == list(lines):
            break
        lines = marked
    return replace(plan, lines=tuple(lines))


def _findings(lines: Sequence[PlanLine]) -> Sequence[SettingFinding]:
    mapped: dict[str, Any] = nested(line for line in lines if line.effect in ("maps", "later"))
    return validate_settings(Given(YamlDocument(mapped.get(SETTINGS) or {}, {}))).findings


def _judged(line: PlanLine, findings: Sequence[SettingFinding]) -> PlanLine:
    key = line.key.removeprefix(f"{SETTINGS}.")
    said = next((one for one in findings if one.key and f"{key}.".startswith(f"{one.key}.")), None)
    if said is None or line.effect not in ("maps", "later"):
        return line
    return replace(line, effect="wrong", note=f"{said.message}; choose another value")
