"""`RehearsedKube` sends every write to the API server as a dry run: rights and admission are checked, nothing stays."""

from dataclasses import replace
from typing import Any

from shared.adapters.kube.client import Document, Kube, KubeRequest

READS = frozenset({"GET"})
DRY_RUN: dict[str, Any] = {"dryRun": "All"}
"""The query of a dry run (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run)."""


class RehearsedKube(Kube):
    """A `Kube` that changes nothing."""

    async def send(self, request: KubeRequest) -> Document:
        """One request and its answer; all but a read is a dry run."""
        if request.method in READS:
            return await super().send(request)
        return await super().send(replace(request, query={**(request.query or {}), **DRY_RUN}))
