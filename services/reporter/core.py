"""Pure decisions of the reporter: the node's object from its fields, when to write it, and the node's readiness."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.reporter.view import Field, FieldSettings, Part, View, changed
from shared.contracts.readiness import ServiceHealth

API_VERSION = "node.katalyst.kubewharf.io/v1alpha1"
KIND = "CustomNodeResource"

Fields = Mapping[str, tuple[Field[Any], FieldSettings]]
"""Every field with its settings, by name."""


def parts(view: View, fields: Fields) -> dict[str, Part]:
    """Each field's part of the document; a field whose input is missing is left out."""
    built = {name: field.part(view, settings) for name, (field, settings) in fields.items()}
    return {name: part for name, part in built.items() if part is not None}


def cnr(node: str, fields: Mapping[str, Part]) -> dict[str, Any]:
    """The CustomNodeResource of a node (notes/katalyst-eviction-central.md section 7.2), in both shapes.

    Raises:
        ValueError: two fields say the same thing.
    """
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": node}}
    for part in fields.values():
        document = _joined(document, part, "")
    return document


def _joined(one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> dict[str, Any]:
    joined = dict(one)
    for key, value in other.items():
        here = joined.get(key)
        if isinstance(here, Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(here, value, f"{path}{key}.")
        elif key in joined:
            raise ValueError(f"report fields: two of them write {path}{key}")
        else:
            joined[key] = value
    return joined


def must_write(
    fields: Fields,
    written: Mapping[str, Part] | None,
    now: Mapping[str, Part],
    *,
    since_written_s: float,
    refresh_s: float,
) -> bool:
    """Whether the object is to be written: never before, an urgent change, or any change once the refresh is due.

    A document that differs in nothing but times is not written again.
    """
    if written is None:
        return True
    if any(field.urgent(written.get(name), now.get(name), settings) for name, (field, settings) in fields.items()):
        return True
    return since_written_s >= refresh_s and changed(written, now)


def fold_health(
    expected: Sequence[str], heard: Mapping[str, tuple[ServiceHealth, float]], *, max_age_s: float
) -> tuple[ServiceHealth, ...]:
    """One health for each expected service, in that order; `heard` is the newest one with its age in seconds.

    A service that was never heard of, or not within `max_age_s`, is not ok: silence is not health. The words name the
    bound, not the age, so that they stay the same for as long as the silence lasts.
    """
    return tuple(_folded(service, heard.get(service), max_age_s) for service in expected)


def _folded(service: str, heard: tuple[ServiceHealth, float] | None, max_age_s: float) -> ServiceHealth:
    if heard is None:
        return ServiceHealth(service=service, ok=False, why="not heard of yet")
    health, age_s = heard
    input_age_s = None if health.input_age_s is None else health.input_age_s + age_s
    silent = age_s > max_age_s
    return ServiceHealth(
        service=service,
        ok=health.ok and not silent,
        why=f"silent for more than {max_age_s:g} s" if silent else health.why,
        input_age_s=input_age_s,
    )


def facts(services: Sequence[ServiceHealth]) -> tuple[tuple[str, bool], ...]:
    """What makes a readiness another one: which service is ok, not how old its input is at the moment."""
    return tuple((health.service, health.ok) for health in services)
