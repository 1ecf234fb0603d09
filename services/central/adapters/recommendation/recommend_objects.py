"""Statuses, checkpoints and resizes through objects that only the leader may write."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.adapters.cnr_conditions import MANAGER
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS, RecommendSeen
from services.central.core.recommendation.objects.status import quantities
from services.central.core.recommendation.objects.workloads import containers_of
from services.central.core.recommendation.resizing import Resize
from services.central.ports.recommendation import KeptUsage, ResizeOutcome
from shared.core.api_kind import POD_RESIZES, PODS, ApiKind
from shared.errors import Conflict, Refused
from shared.ports import Objects

log = structlog.get_logger()

USAGE_CHECKPOINTS = ApiKind(
    "recommendation.sublet.io", "v1alpha1", "UsageCheckpoint", "usagecheckpoints", namespaced=True, status=False
)

MAX_USAGE_CHARACTERS = 1 << 20
"""32 containers take some 200 KB, the API server takes 1.5 MB."""


class RecommendObjects:
    """The `RecommendWriter` of a cluster."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def write_status(self, seen: RecommendSeen, status: Mapping[str, Any]) -> None:
        """Patch the status of this UID; an object recreated under the same name has another UID, and the patch is
        refused."""
        document = {"metadata": _named(seen) | {"uid": seen.uid}, "status": status}
        await self._objects.patch(RESOURCE_RECOMMENDS, document, status=True)

    async def kept_usages(self) -> Sequence[KeptUsage]:
        """Return the checkpoints that are readable and name their owner; without one, history begins again."""
        found = []
        for document in await self._objects.list(USAGE_CHECKPOINTS):
            try:
                found.append(kept_usage(document))
            except Refused as refusal:
                log.warning("checkpoint.unreadable", why=str(refusal))
        return found

    async def keep_usage(self, seen: RecommendSeen, usage: str) -> None:
        """The ResourceRecommend owns it, so that the API server's garbage collector removes it with that."""
        owner = {**RESOURCE_RECOMMENDS.head, "name": seen.name, "uid": seen.uid, "controller": True}
        document = {
            "metadata": {**_named(seen), "ownerReferences": [owner]},
            # One text, not a tree: so that it is replaced as a whole, and no manager is kept for each bucket.
            "spec": {"usage": usage},
        }
        await self._objects.apply(USAGE_CHECKPOINTS, document, manager=MANAGER)

    async def resize(self, resize: Resize) -> ResizeOutcome:
        """Read the pod, and change the requests of exactly that version of it."""
        pod = resize.pod
        there = await self._objects.get(PODS, pod.name, pod.namespace)
        if there is None or there["metadata"].get("uid") != pod.uid:
            return "gone"
        spec = there.get("spec") or {}
        if containers_of(spec) != pod.containers:
            return "changed"
        meta = {key: there["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        document = {"metadata": meta, "spec": {"containers": _resized(spec["containers"], resize)}}
        try:
            if await self._objects.patch(POD_RESIZES, document) is not None:
                return "asked"
        except Conflict:
            return "changed"
        # The path answered 404: the pod has gone since, or this API server has no such path.
        still = await self._objects.get(PODS, pod.name, pod.namespace)
        return "unsupported" if still is not None and still["metadata"].get("uid") == pod.uid else "gone"


def kept_usage(document: Mapping[str, Any]) -> KeptUsage:
    """Parse a checkpoint.

    Raises:
        Refused: `checkpoint`, with the name.
    """
    meta, spec = document.get("metadata"), document.get("spec")
    meta = meta if isinstance(meta, Mapping) else {}
    text = spec.get("usage") if isinstance(spec, Mapping) else None
    where = f"UsageCheckpoint {meta.get('namespace')}/{meta.get('name')}"
    owners = meta.get("ownerReferences")
    uids = [one.get("uid") for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    if len(uids) != 1 or not isinstance(uids[0], str):
        raise Refused(f"{where}: want one owner, the ResourceRecommend", reason="checkpoint")
    if not isinstance(text, str) or len(text) > MAX_USAGE_CHARACTERS:
        raise Refused(f"{where}: spec.usage: want a text of at most {MAX_USAGE_CHARACTERS}", reason="checkpoint")
    return KeptUsage(uids[0], text)


def _named(seen: RecommendSeen) -> dict[str, Any]:
    return {"name": seen.name, "namespace": seen.namespace}


def _resized(containers: Sequence[Mapping[str, Any]], resize: Resize) -> list[dict[str, Any]]:
    """The containers as they are, but for the requests."""
    found = []
    for row in containers:
        changed = copy.deepcopy(dict(row))
        if (amounts := resize.requests.get(str(row.get("name")))) is not None:
            resources = changed.setdefault("resources", {})
            resources["requests"] = {**(resources.get("requests") or {}), **quantities(amounts)}
        found.append(changed)
    return found
