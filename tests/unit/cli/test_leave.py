"""Who gives a node back: an agent whose installation is gone, and never one that is only restarted."""

import pytest
from kube_api import Api, FakeKube

from sublet.cluster.uninstalled import is_uninstalled

PATH = "/apis/apps/v1/namespaces/sublet-system/daemonsets/sublet-node"
DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("daemonset", "status", "away", "uninstalled"),
    [
        ({}, 0, False, False),
        (DELETED, 0, False, True),
        (None, 0, False, True),
        ({}, 401, False, False),
        ({}, 403, False, False),
        (None, 401, False, False),
        (None, 403, False, False),
        ({}, 429, False, False),
        ({}, 500, False, False),
        ({}, 0, True, False),
        (None, 0, True, False),
    ],
)
async def test_the_node_is_given_back_only_where_nobody_would_come_back(
    daemonset: dict[str, dict[str, str]] | None, status: int, away: bool, uninstalled: bool
) -> None:
    api = Api()
    if daemonset is not None:
        api.put(PATH, daemonset)
    api.failing, api.away = status, away
    assert await is_uninstalled(FakeKube(api), "sublet-system", "sublet-node") is uninstalled
