"""What central writes to an over-committed Node, and why it has its ratio.

Kubelet writes the figures, and the webhook changes them on the way. Kubelet checks every ten seconds, but writes
nothing for five minutes while its figures are stored. Central therefore writes the advertised figures once, and kubelet
continues.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.overcommit.admit import ByResource
from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.config_documents import OvercommitConfig, OvercommitLimits
from services.central.core.overcommit.node_documents import (
    KEYS,
    OVERCOMMIT_KEYS,
    RATIO_KEYS,
    OvercommitNode,
    figure_texts,
)
from services.central.core.overcommit.node_report import NodeOvercommitReport
from services.central.core.overcommit.ratio import effective_ratio
from shared.contracts.kube.overcommit import Resource, realtime_ratio_key, set_ratio_key

Standing = Literal["none", "waits_for_kubelet", "unheard", "bears_less", "as_set", "withdrawing"]
"""`unheard`: the node does not say what it can bear. `withdrawing`: kubelet has not written its own figures again."""
NOTHING_BORNE = "1.00"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """Annotations to write (None: remove), and the state of the node."""

    annotations: Mapping[str, str | None]
    standing: Standing
    figures: Mapping[Resource, Amounts] = field(default_factory=dict)
    """What the Node must advertise, for resources whose kubelet figures are known."""
    ratios: Mapping[Resource, float] = field(default_factory=dict)
    set_ratios: Mapping[Resource, str] = field(default_factory=dict)
    bearable: Mapping[Resource, str] = field(default_factory=dict)
    config: str | None = None


def node_plan(
    node: OvercommitNode,
    config: OvercommitConfig | None,
    report: NodeOvercommitReport | None,
    limits: OvercommitLimits,
    *,
    unheard: bool,
) -> NodePlan:
    """Return what is due for a Node with this config and its own report.

    `unheard`: the node has not reported what it can bear for longer than its last report is valid.
    """  # fmt: skip
    if config is None or not config.ratios:
        return _without(node)
    bearable = _bearable(node, config, report, limits, unheard=unheard)
    ratios = {name: effective_ratio(given, bearable.get(name)).value for name, given in config.ratios.items()}
    bound = 0 if report is None else report.bound_cpu_millis
    figures: dict[Resource, Amounts] = {
        name: original.times(ratios.get(name, 1.0), bound=bound if name == "cpu" else 0)
        for name, original in node.said.originals.items()
    }
    wanted: dict[str, str | None] = {
        **{set_ratio_key(name): given for name, given in config.ratios.items()},
        **{realtime_ratio_key(name): borne for name, borne in bearable.items()},
        **figure_texts("overcommit", {name: amounts for name, amounts in figures.items() if name in ratios}),
    }
    gone = (node.annotations.keys() & (RATIO_KEYS | OVERCOMMIT_KEYS)) - wanted.keys()
    changes = {key: text for key, text in wanted.items() if node.annotations.get(key) != text} | dict.fromkeys(gone)
    standing = _standing(node, config, report, ratios)
    return NodePlan(changes, standing, figures, ratios, config.ratios, bearable, config.name)


def figures_to_write(node: OvercommitNode, plan: NodePlan) -> ByResource:
    """The figures of a Node that are to be written; none where it shows what it is to show.

    Where kubelet's own are not known, a milli-core less of CPU: a status that differs from its own brings kubelet to
    write within ten seconds, through the webhook, and nothing is offered meanwhile that is not there.
    """
    if plan.figures:
        return {name: amounts for name, amounts in plan.figures.items() if node.status.get(name) != amounts}
    cpu = node.status.get("cpu")
    if plan.standing != "waits_for_kubelet" or cpu is None or cpu.allocatable < 1:
        return {}
    return {"cpu": Amounts(cpu.allocatable - 1, cpu.capacity)}


def _without(node: OvercommitNode) -> NodePlan:
    """Kubelet's figures stay known until they are shown again: the webhook needs them to tell them from others."""
    back = all(node.status.get(name) == own for name, own in node.said.originals.items())
    gone = node.annotations.keys() & (KEYS if back else RATIO_KEYS | OVERCOMMIT_KEYS)
    return NodePlan(dict.fromkeys(sorted(gone)), "none" if back else "withdrawing", node.said.originals)


def _bearable(
    node: OvercommitNode,
    config: OvercommitConfig,
    report: NodeOvercommitReport | None,
    limits: OvercommitLimits,
    *,
    unheard: bool,
) -> dict[Resource, str]:
    """Return ratios by resource as written; without an entry only the set ratio applies."""
    found: dict[Resource, str] = {}
    for name in config.ratios:
        said = None if report is None or report.silent else report.bearable.get(name)
        before = node.said.realtime.get(name)
        if said is not None:
            found[name] = said
        elif before is not None and not unheard and not (report and report.silent):
            found[name] = before
        elif not limits.by_label_alone or (report is not None and report.bearable):
            found[name] = NOTHING_BORNE
    return found


def _standing(
    node: OvercommitNode,
    config: OvercommitConfig,
    report: NodeOvercommitReport | None,
    ratios: Mapping[Resource, float],
) -> Standing:
    if not node.said.originals:
        return "waits_for_kubelet"
    heard = report is not None and not report.silent and report.bearable
    less = any(ratio < effective_ratio(config.ratios[name], None).value for name, ratio in ratios.items())
    if less:
        return "bears_less" if heard else "unheard"
    return "as_set"
