"""A Node without a machine: the API server and its controllers take it for one for as long as its lease is renewed."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shared.adapters.kube.client import Kube, KubeError

NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HOSTNAME = "kubernetes.io/hostname"
AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
RENEW_S, LOOK_S = 5.0, 0.1
KUBELET = "kubelet"


class PaperNode:
    """It is ready, and carries a label and a taint of the same name: pods come to it that want to."""

    def __init__(self, kube: Kube, name: str, label: str, amounts: Mapping[str, str]) -> None:
        self._kube, self.name, self._label, self._amounts = kube, name, label, dict(amounts)

    async def register(self) -> None:
        """Tell the API server."""
        meta = {"name": self.name, "labels": {self._label: "yes", HOSTNAME: self.name}}
        held = [{"key": self._label, "effect": "NoSchedule"}]
        await self._kube.create(NODES, {"metadata": meta, "spec": {"taints": held}}, manager=KUBELET)
        await self._kube.create(LEASES, {"metadata": {"name": self.name}, "spec": self._lease()}, manager=KUBELET)
        ready = {"type": "Ready", "status": "True", "reason": "OnPaper"}
        status = {"capacity": self._amounts, "allocatable": self._amounts, "conditions": [ready]}
        await self._kube.merge(f"{NODES}/{self.name}/status", {"status": status}, manager=KUBELET)

    async def breathe(self) -> None:
        """Renew the lease for ever."""
        while True:
            await real_s(RENEW_S)
            await self._kube.merge(f"{LEASES}/{self.name}", {"spec": self._lease()}, manager=KUBELET)

    async def remove(self) -> None:
        """Take it away."""
        for path in (NODES, LEASES):
            with contextlib.suppress(KubeError):
                await self._kube.delete(f"{path}/{self.name}")

    def _lease(self) -> dict[str, Any]:
        return {"holderIdentity": self.name, "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"}


async def make_namespace(kube: Kube, name: str) -> None:
    """A namespace in which pods can be made: a controller gives it the account without which none may be.

    Where one of this name is still on its way out, that is waited for.
    """
    while True:
        with contextlib.suppress(KubeError):
            await kube.create("/api/v1/namespaces", {"metadata": {"name": name}}, manager="test")
            break
        await real_s(LOOK_S)
    while True:
        with contextlib.suppress(KubeError):
            await kube.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
            break
        await real_s(LOOK_S)


async def remove_namespace(kube: Kube, name: str) -> None:
    """Take it away with its pods, which no kubelet will end."""
    for path, how in ((f"/api/v1/namespaces/{name}/pods", AT_ONCE), (f"/api/v1/namespaces/{name}", None)):
        with contextlib.suppress(KubeError):
            await kube.delete(path, how)


async def real_s(seconds: float) -> None:
    """Wait so long on this machine, whatever time the running loop has."""
    await asyncio.to_thread(time.sleep, seconds)
