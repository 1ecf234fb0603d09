"""Field to copy: reports available memory as an annotation of the node's object.

The field is complete and works, but it is not loaded: `services/reporter/registry.py` skips this module.
docs/writing-a-field.md explains it line by line, and shows how to give a field its own settings.
"""

from sublet.api.field import FieldSettings, FieldView, Fragment, ReportField, format_units, parse_units, plain

NAME = "example.com/memory-available"
URGENT_FALL = 0.5
"""A fall below this share of the last written value is urgent."""


def fragment(view: FieldView) -> Fragment | None:
    """1. Return the field's fragment of the object, or None if the input is missing or stale: absent is not zero."""
    if view.sample is None or not view.sample_fresh:
        return None
    available = view.sample.node_reading.memory_available_bytes
    return None if available is None else {"metadata": {"annotations": {NAME: format_units(available)}}}


def urgent(before: Fragment | None, now: Fragment | None, _settings: FieldSettings) -> bool:
    """2. Return whether this change must be written at once. Other changes wait for the next refresh."""
    # The annotation appeared or disappeared, and readers depend on its presence.
    if before is None or now is None:
        return before is not now
    # A rise can wait: a reader that sees too little memory does no harm.
    return _bytes(now) < URGENT_FALL * _bytes(before)


def _bytes(written: Fragment) -> int:
    return parse_units(written["metadata"]["annotations"][NAME])


# 3. The settings, the fragment and the urgency. `plain` wraps a fragment that needs no settings.
FIELD = ReportField(FieldSettings, plain(fragment), urgent)
