"""Collects the facts of an upgrade from the API server. Nothing is written."""

from collections.abc import Awaitable
from typing import TypeVar

from shared.adapters.kube.client import Kube
from shared.core.api_kind import CNRS
from shared.errors import SubletError
from sublet.doctor.finding import Known, Unknown
from sublet.doctor.upgrade.chart import UpgradeChart
from sublet.doctor.upgrade.checks import UpgradeFacts
from sublet.doctor.upgrade.release import HelmRelease, deployed, read_release

RELEASE = "sublet"
KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
T = TypeVar("T")


async def upgrade_facts(kube: Kube, namespace: str, chart: UpgradeChart) -> UpgradeFacts:
    """Everything, without raising: what cannot be had is `Unknown`."""
    return UpgradeFacts(
        chart=chart,
        kinds=await _known(_items(kube, KINDS)),
        node_objects=await _known(_items(kube, CNRS.collection())),
        release=await _known(_release(kube, namespace)),
    )


async def _items(kube: Kube, path: str, **query: object) -> list[dict[str, object]]:
    return list((await kube.list(path, **query)).get("items") or ())


async def _release(kube: Kube, namespace: str) -> HelmRelease | None:
    chosen = f"owner=helm,name={RELEASE},status=deployed"
    found = deployed(await _items(kube, f"/api/v1/namespaces/{namespace}/secrets", labelSelector=chosen), RELEASE)
    return None if found is None else read_release(found)


async def _known(answer: Awaitable[T]) -> Known[T]:
    """What is answered, or why nothing is."""
    try:
        return await answer
    except (SubletError, KeyError, TypeError) as error:
        return Unknown(str(error))
