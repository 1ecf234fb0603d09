"""The field to copy: how much memory is available, as an annotation of the node's object.

It is complete and it works, but it is not reported: `services/reporter/registry.py` leaves out the module of this name.
docs/writing-a-field.md explains it line by line, and shows how a field gets settings of its own.
"""

from sublet.api.field import FieldSettings, FieldView, Fragment, ReportField, format_units, parse_units, plain

NAME = "example.com/memory-available"
URGENT_FALL = 0.5
"""A fall below this share of what was written is written at once."""


def fragment(view: FieldView) -> Fragment | None:
    """1. The field's fragment of the object; None where its input is missing or too old: absent is not zero."""
    if view.sample is None or not view.sample_fresh:
        return None
    available = view.sample.node_reading.memory_available_bytes
    return None if available is None else {"metadata": {"annotations": {NAME: format_units(available)}}}


def urgent(before: Fragment | None, now: Fragment | None, _settings: FieldSettings) -> bool:
    """2. Whether this change must be written at once; what is not urgent is written with the next refresh."""
    # It came or it went: whoever reads the object goes by whether it is there.
    if before is None or now is None:
        return before is not now
    # A rise can wait: somebody who still sees less memory than there is does no harm.
    return _bytes(now) < URGENT_FALL * _bytes(before)


def _bytes(written: Fragment) -> int:
    return parse_units(written["metadata"]["annotations"][NAME])


# 3. Settings, the fragment, and what is urgent. `plain`: this fragment needs no settings.
FIELD = ReportField(FieldSettings, plain(fragment), urgent)
