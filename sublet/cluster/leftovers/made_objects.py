"""Objects that Sublet has created, and that are useless without the part that created them."""

from services.central.adapters.https.serving_secret import SECRETS
from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.service_profiles.descriptor import DESCRIPTORS, MADE_LABEL, NAME
from shared.adapters.kube.client import Kube, KubeError
from shared.core.api_kind import PODS, ApiKind
from sublet.cluster.leftovers.edits import (
    NOT_FOUND,
    Document,
    Edit,
    Say,
    all_of,
    name_of,
    take_away,
    without_annotations,
)


async def remove(kube: Kube, kind: ApiKind, name: str, namespace: str, say: Say) -> None:
    """Delete an object, if it is there.

    Raises:
        KubeError: the API server refuses.
    """
    try:
        await kube.delete(kind.path(name, namespace))
    except KubeError as error:
        if error.status != NOT_FOUND:
            raise
        return
    say(f"{kind.plural}/{name_of({'metadata': {'namespace': namespace, 'name': name}})} deleted")


async def remove_secret(kube: Kube, name: str, namespace: str, say: Say) -> None:
    """Delete the certificate that the replicas of a process shared."""
    await remove(kube, SECRETS, name, namespace, say)


async def remove_checkpoints(kube: Kube, say: Say) -> None:
    """Delete what was learned of pods' use: the kind is Sublet's own."""
    for one in await all_of(kube, USAGE_CHECKPOINTS):
        await remove(kube, USAGE_CHECKPOINTS, one["metadata"]["name"], one["metadata"]["namespace"], say)


async def remove_descriptors(kube: Kube, say: Say) -> None:
    """Take the names of descriptors that central has made from pods, and then delete these; others' stay."""
    made = [one for one in await all_of(kube, DESCRIPTORS) if MADE_LABEL in (one["metadata"].get("labels") or {})]
    names = {name_of(one) for one in made}

    def unnamed(pod: Document) -> Document | None:
        meta = pod["metadata"]
        named = f"{meta.get('namespace')}/{(meta.get('annotations') or {}).get(NAME)}"
        return without_annotations(pod, frozenset({NAME})) if named in names else None

    if made:
        await take_away(kube, Edit(PODS, unnamed, f"{NAME} removed"), say)
    for one in made:
        await remove(kube, DESCRIPTORS, one["metadata"]["name"], one["metadata"]["namespace"], say)
