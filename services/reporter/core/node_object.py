"""Join the fields' fragments to the node's object, and say when it must be written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, changed
from services.reporter.core.health import facts

API_VERSION = "node.katalyst.kubewharf.io/v1alpha1"
KIND = "CustomNodeResource"

Fields = Mapping[str, tuple[ReportField[Any], FieldSettings]]
"""Every field with its settings, by name."""


MOST_PASSED_OVER_S = 5.0
"""Longest time for which an unchanged view is skipped, because a field may use the time."""


@dataclass(frozen=True, slots=True)
class JudgedView:
    """A view by which nothing had to be written, and when it was judged."""

    view: FieldView
    at_s: float
    """When all of its fields were judged."""
    watched: Mapping[str, object] = field(default_factory=dict)
    """By field, the part of the view that can make a change urgent, if the field declares it."""

    @classmethod
    def of(cls, view: FieldView, fields: Fields, now_s: float) -> "JudgedView":
        """The view, all of whose fields were judged now."""
        return cls(view, now_s, _watched(view, fields))

    def passed_over(
        self, view: FieldView, fields: Fields, written: Mapping[str, Fragment], now_s: float
    ) -> "JudgedView | None":
        """Return the judgement for another view that brings nothing urgent; None: everything must be judged."""
        if now_s - self.at_s >= MOST_PASSED_OVER_S:
            return None
        if self.stands(view, now_s):
            return self
        # To make the fragments of hundreds of pods is nearly all that a look costs, and most of them cannot be urgent.
        watched = _watched(view, fields)
        news = {name: fields[name] for name in fields if name not in watched or watched[name] != self.watched.get(name)}
        return None if urgent(news, written, fragments(view, news)) else JudgedView(view, self.at_s, watched)

    def stands(self, view: FieldView, now_s: float) -> bool:
        """Return whether another view differs only in the time and the ages of what services heard last."""
        same = replace(view, now=self.view.now, services=self.view.services) == self.view
        return same and now_s - self.at_s < MOST_PASSED_OVER_S and facts(view.services) == facts(self.view.services)


def _watched(view: FieldView, fields: Fields) -> dict[str, object]:
    return {name: one.watches(view) for name, (one, _) in fields.items() if one.watches is not None}


def fragments(view: FieldView, fields: Fields) -> dict[str, Fragment]:
    """Each field's fragment of the document; a field whose input is missing is left out."""
    built = {name: one.fragment(view, settings) for name, (one, settings) in fields.items()}
    return {name: fragment for name, fragment in built.items() if fragment is not None}


def cnr(node: str, fields: Mapping[str, Fragment]) -> dict[str, Any]:
    """The CustomNodeResource of a node, in both shapes (docs/facts/katalyst-cluster.md#customnoderesource).

    Raises:
        ValueError: two fields say the same thing.
    """
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": node}}
    for fragment in fields.values():
        document = _joined(document, fragment, "")
    return document


def _joined(one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> dict[str, Any]:
    joined = dict(one)
    for key, value in other.items():
        here = joined.get(key)
        if isinstance(here, Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(here, value, f"{path}{key}.")
        # The later field would win in silence, by the order of their names.
        elif key in joined:
            raise ValueError(f"report fields: two of them write {path}{key}")
        else:
            joined[key] = value
    return joined


def urgent(fields: Fields, written: Mapping[str, Fragment], now: Mapping[str, Fragment]) -> bool:
    """Return whether one of these fields has an urgent change."""
    return any(one.urgent(written.get(name), now.get(name), settings) for name, (one, settings) in fields.items())


def must_write(
    fields: Fields,
    written: Mapping[str, Fragment] | None,
    now: Mapping[str, Fragment],
    *,
    since_written_s: float,
    refresh_s: float,
) -> bool:
    """Return whether the object must be written: never written before, an urgent change, or any change once the
    refresh is due.

    A document that differs only in times is not written again.
    """
    if written is None:
        return True
    if urgent(fields, written, now):
        return True
    # A node on which nothing happens costs the API server nothing.
    return since_written_s >= refresh_s and changed(written, now)
