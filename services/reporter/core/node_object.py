"""Join the fields' fragments to the node's object, and say when it must be written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, changed
from services.reporter.core.health import facts

API_VERSION = "node.katalyst.kubewharf.io/v1alpha1"
KIND = "CustomNodeResource"

Fields = Mapping[str, tuple[ReportField[Any], FieldSettings]]
"""Every field with its settings, by name."""


MOST_PASSED_OVER_S = 5.0
"""Within this time a view is judged again even where time alone has passed: a field may look at the clock."""


@dataclass(frozen=True, slots=True)
class JudgedView:
    """A view by which nothing had to be written, and when it was judged."""

    view: FieldView
    at_s: float

    def stands(self, view: FieldView, now_s: float) -> bool:
        """Whether another view differs in nothing but the time and the ages of what services heard last."""
        same = replace(view, now=self.view.now, services=self.view.services) == self.view
        return same and now_s - self.at_s < MOST_PASSED_OVER_S and facts(view.services) == facts(self.view.services)


def fragments(view: FieldView, fields: Fields) -> dict[str, Fragment]:
    """Each field's fragment of the document; a field whose input is missing is left out."""
    built = {name: field.fragment(view, settings) for name, (field, settings) in fields.items()}
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


def must_write(
    fields: Fields,
    written: Mapping[str, Fragment] | None,
    now: Mapping[str, Fragment],
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
    # A node on which nothing happens costs the API server nothing.
    return since_written_s >= refresh_s and changed(written, now)
