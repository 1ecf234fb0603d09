"""Why a node has its ratio, and what became of a config, for everybody who asks."""

from collections.abc import Mapping

from services.central.core.overcommit.config_documents import OvercommitConfig
from services.central.core.overcommit.config_status import ConfigStanding, conditions_due
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
CONFIG_VERDICTS: Mapping[str, str] = {
    "Refused": "refused",
    "PoolTaken": "pool_taken",
    "NoNodes": "no_nodes",
    "NotAsSet": "not_as_set",
    "AsSet": "all_as_set",
}
"""By the reason of the condition that says most."""


def decided_config(config: OvercommitConfig, standing: ConfigStanding) -> Decided:
    """The decision on a config: refused, overruled, or what its nodes show."""
    last = conditions_due(config, standing)[-1]
    why = Reason(
        rule=last["reason"],
        numbers={"pool": config.claim.pool, "ruler": standing.ruler, "nodes": len(standing.plans), **config.ratios},
    )
    return Decided(
        area=AREA,
        about=DecidedObject(kind="nodeovercommitconfig", name=config.name),
        verdict=CONFIG_VERDICTS[last["reason"]],
        message=last["message"] or f"all of {len(standing.plans)} nodes show what was set",
        why=(why,),
    )


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
