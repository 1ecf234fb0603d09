"""Find the report fields, and check the settings of each."""

from typing import Any

from services.reporter import fields
from services.reporter.core.field import ReportField
from services.reporter.core.node_object import Fields
from services.reporter.settings import NAME, ReporterSettings
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import BadConfig
from shared.registry import Registry
from shared.settings import check

TEMPLATE = "template"


def known_fields() -> dict[str, ReportField[Any]]:
    """Every field of the folder `fields`, by name.

    Without the template: there is no setting that switches a field off, and what it says would be in every object.
    """
    registry: Registry[ReportField[Any]] = Registry(ReportField, fields, "FIELD")
    return {name: field for name, field in registry.known().items() if name != TEMPLATE}


def configured_fields(settings: ReporterSettings) -> Fields:
    """Every field with its settings, by name.

    Raises:
        BadConfig: settings are given for a field that does not exist, or a field refuses its own.
    """
    known = known_fields()
    for name in settings.fields:
        if name not in known:
            meant = did_you_mean(name, known)
            raise BadConfig(f"settings: {NAME}.fields.{name}: no such report field; {meant}", reason="invalid")
    return {
        name: (field, check(field.settings, settings.fields.get(name, {}), where=f"{NAME}.fields.{name}"))
        for name, field in known.items()
    }
