"""Why a node has its ratio, for everybody who asks."""

from collections.abc import Mapping

from services.central.core.overcommit.node_plan import NodePlan, Standing
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "overcommit"
SENTENCES: Mapping[Standing, str] = {
    "none": "no config rules this node, and it shows kubelet's figures",
    "withdrawing": "no config rules this node any more; kubelet writes its own figures within ten seconds",
    "waits_for_kubelet": "kubelet has not written its status through the webhook yet",
    "unheard": "the node does not say what it can bear, and so bears nothing more",
    "bears_less": "the node can bear less than was set",
    "as_set": "the ratio that was set holds",
}


def decided(node: str, plan: NodePlan) -> Decided:
    """The decision on a node, with the numbers that were used for each resource."""
    ratios = ", ".join(f"{name} by {ratio:g}" for name, ratio in plan.ratios.items())
    ruled = f"NodeOvercommitConfig {plan.config}: {ratios}: " if plan.config else ""
    reasons = [
        Reason(
            rule=f"{name}_overcommit_ratio",
            numbers={"ratio": ratio, "set": plan.set_ratios.get(name), "bearable": plan.bearable.get(name)},
        )
        for name, ratio in plan.ratios.items()
    ]
    return Decided(
        area=AREA,
        about=DecidedObject(kind="node", name=node),
        verdict=plan.standing,
        message=f"{ruled}{SENTENCES[plan.standing]}",
        why=tuple(reasons),
    )
