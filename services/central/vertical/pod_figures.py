"""New requests and limits of one pod, through its subresource, for exactly the pod that was seen."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from services.central.core.recommendation.objects.status import quantities
from services.central.core.recommendation.objects.workloads import WorkloadPod, containers_of
from services.central.core.recommendation.vpa_target import ContainerFigures
from shared.core.api_kind import POD_RESIZES, PODS
from shared.errors import Conflict
from shared.ports import Objects

Outcome = Literal["asked", "changed", "unsupported"]


async def resize_pod(objects: Objects, pod: WorkloadPod, figures: Mapping[str, ContainerFigures]) -> Outcome:
    """Read the pod, and change that version of it.

    Raises:
        SubletError: the API server is away or refuses, or another one leads.
    """
    there = await objects.get(PODS, pod.name, pod.namespace)
    if there is None or there["metadata"].get("uid") != pod.uid:
        return "changed"
    spec = there.get("spec") or {}
    if containers_of(spec) != pod.containers:
        return "changed"
    meta = {key: there["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    try:
        document = {"metadata": meta, "spec": {"containers": _changed(spec["containers"], figures)}}
        answer = await objects.patch(POD_RESIZES, document)
    except Conflict:
        return "changed"
    if answer is not None:
        return "asked"
    # The path answered 404: the pod has gone since, or this API server has no such path.
    return "changed" if await objects.get(PODS, pod.name, pod.namespace) is None else "unsupported"


def _changed(containers: Sequence[Mapping[str, Any]], figures: Mapping[str, ContainerFigures]) -> list[dict[str, Any]]:
    """The containers as they are, but for the figures."""
    found = []
    for row in containers:
        changed = copy.deepcopy(dict(row))
        if (one := figures.get(str(row.get("name")))) is not None:
            resources = changed.setdefault("resources", {})
            for part, amounts in (("requests", one.requests), ("limits", one.limits)):
                if amounts:
                    resources[part] = {**(resources.get(part) or {}), **quantities(amounts)}
        found.append(changed)
    return found
