"""Find the report fields, and check the settings of each."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from services.reporter import fields
from services.reporter.core.field import ReportField
from services.reporter.core.node_object import Fields
from services.reporter.settings import NAME, ReporterSettings
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import SettingProblem
from shared.registry import Registry
from shared.settings import all_of, check

TEMPLATE = "template"


def known_fields() -> dict[str, ReportField[Any]]:
    """Return every field of the folder `fields`, by name.

    The template is left out: no setting disables a field, so it would be in every object.
    """
    registry: Registry[ReportField[Any]] = Registry(ReportField, fields, "FIELD")
    return {name: field for name, field in registry.known().items() if name != TEMPLATE}


def configured_fields(settings: ReporterSettings) -> Fields:
    """Every field with its settings, by name.

    Raises:
        BadConfig: settings are given for a field that does not exist, or a field refuses its own.
    """
    known = known_fields()
    absent = [_unknown(name, known) for name in settings.fields if name not in known]
    checks = {name: partial(_configured, name, field, settings.fields.get(name, {})) for name, field in known.items()}
    return dict(zip(checks, all_of(*checks.values(), problems=absent), strict=True))


def _unknown(name: str, known: Iterable[str]) -> SettingProblem:
    return SettingProblem((NAME, "fields", name), f": no such report field; {did_you_mean(name, known)}")


def _configured(name: str, field: ReportField[Any], given: Mapping[str, Any]) -> tuple[ReportField[Any], Any]:
    return field, check(field.settings, given, where=(NAME, "fields", name))
