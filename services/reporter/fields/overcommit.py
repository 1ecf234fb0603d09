"""Report the over-commitment that the node can bear, and kubelet's managers, as annotations for central and
Katalyst.

Facts: docs/facts/katalyst-overcommit.md#annotations.
"""

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, plain
from shared.contracts.kube.overcommit import set_ratio_key


def fragment(view: FieldView) -> Fragment | None:
    """Return one annotation per resource with a known ratio, and the annotations of kubelet's managers."""
    annotations = {set_ratio_key(name): f"{ratio:.2f}" for name, ratio in view.bearable}
    if view.binding is not None:
        annotations |= view.binding.annotations
    return {"metadata": {"annotations": annotations}} if annotations else None


FIELD = ReportField(FieldSettings, plain(fragment), watches=lambda view: (view.bearable, view.binding))
