"""The parts of the cluster's half by the names of their switches, and the removal of what each has left."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from services.central.settings import ExtenderSettings, MetricsApiSettings, WebhookSettings
from shared.adapters.kube.client import Kube, KubeError
from shared.errors import Unavailable
from sublet.cluster.leftovers.edits import (
    APPLIED_WORDS,
    AUTOSCALER_BOUNDS,
    GATED_PODS,
    OVERCOMMIT_FIGURES,
    OVERCOMMIT_MARKS,
    REFUSALS,
    Edit,
    Say,
    take_away,
)
from sublet.cluster.leftovers.made_objects import remove_checkpoints, remove_descriptors, remove_secret
from sublet.cluster.leftovers.tide_pools import clear_tide_pools

Clear = Callable[[Kube, str, Say], Awaitable[None]]
"""The second is the namespace that Sublet is installed in."""


async def _edits(kube: Kube, _namespace: str, say: Say, *, edits: Iterable[Edit]) -> None:
    for edit in edits:
        await take_away(kube, edit, say)


async def _secret(kube: Kube, namespace: str, say: Say, *, name: str) -> None:
    await remove_secret(kube, name, namespace, say)


async def _everywhere(kube: Kube, _namespace: str, say: Say, *, work: Callable[[Kube, Say], Awaitable[None]]) -> None:
    await work(kube, say)


PARTS: Mapping[str, tuple[Clear, ...]] = {
    "gate": (partial(_edits, edits=[GATED_PODS]),),
    "scheduling": (partial(_edits, edits=[REFUSALS]), partial(_secret, name=ExtenderSettings().secret)),
    # Figures first: the marks say what they were.
    "overcommit": (partial(_edits, edits=[OVERCOMMIT_FIGURES, OVERCOMMIT_MARKS]),),
    "tide": (partial(_everywhere, work=clear_tide_pools),),
    "clock-bounds": (partial(_edits, edits=[AUTOSCALER_BOUNDS]),),
    "vertical": (partial(_edits, edits=[APPLIED_WORDS]),),
    "service-profiles": (partial(_everywhere, work=remove_descriptors),),
    "recommendation": (partial(_everywhere, work=remove_checkpoints),),
    "metrics-api": (partial(_secret, name=MetricsApiSettings().secret),),
    "webhook": (partial(_secret, name=WebhookSettings().secret),),
}


async def clear_parts(kube: Kube, namespace: str, names: Iterable[str], say: Say) -> None:
    """Take away what these parts have left, one after the other; one that fails holds up no other.

    Raises:
        Unavailable: something could not be taken away; what is done stays done.
    """
    failed: list[str] = []
    for name in names:
        for clear in PARTS[name]:
            try:
                await clear(kube, namespace, say)
            except (KubeError, Unavailable) as error:
                failed.append(f"{name}: {error}")
    if failed:
        raise Unavailable(f"{'; '.join(failed)}; run it again", reason="left")
