"""The objects of a running cluster that a plan is made of."""

import asyncio
from typing import Any

import pytest
from plan_documents import KATALYST, KOORDINATOR, documents

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.errors import Refused, Unavailable
from sublet.migrate.plan.cluster import KINDS, read_cluster_objects
from sublet.migrate.plan.objects import ClusterObject, objects_of
from sublet.migrate.plan.systems import PLANNERS

GIVEN = [*documents(KOORDINATOR.replace("GATES", "")), *documents(KATALYST)[0]["items"]]


class Server(Kube):
    """Lists as an API server gives them: items without kind and version, and only kinds that it has."""

    def __init__(self, refused: str = "") -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[tuple[str, Any]] = []

    async def list(self, path: str, **query: object) -> Document:
        self.asked.append((path, query))
        if path.endswith(self.refused or "nothing"):
            raise KubeError(f"GET {path}", 403, {"message": f"cannot list {path}"})
        kind = next(kind for kinds in KINDS.values() for kind, where in kinds if where.partition("?")[0] == path)
        found = [one for one in GIVEN if one["kind"] == kind]
        if not found:
            raise KubeError(f"GET {path}", 404, {"message": "no such kind"})
        return {"items": [{key: one[key] for key in one if key not in ("kind", "apiVersion")} for one in found]}


def read(system: str, server: Server) -> list[ClusterObject]:
    return asyncio.run(read_cluster_objects(server, KINDS[system]))


@pytest.mark.parametrize("system", sorted(PLANNERS))
def test_a_cluster_is_planned_as_its_files_are(system: str) -> None:
    from_files = PLANNERS[system](objects_of(GIVEN, "here"))
    from_cluster = PLANNERS[system](read(system, Server()))
    key = {line.source + line.given_key + line.key: line for line in from_files.lines}
    assert from_cluster.lines
    assert {line.source + line.given_key + line.key: line for line in from_cluster.lines} == key


def test_of_config_maps_the_one_is_asked_for() -> None:
    server = Server()
    read("koordinator", server)
    assert ("/api/v1/configmaps", {"fieldSelector": "metadata.name=slo-controller-config"}) in server.asked


def test_who_may_not_read_is_told_what_and_the_way_around() -> None:
    with pytest.raises(Unavailable, match=r"cannot list /api/v1/nodes; or write it into files and name them with -f"):
        read("koordinator", Server("/nodes"))


def test_too_many_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sublet.migrate.plan.objects.MAX_OBJECTS", 0)
    with pytest.raises(Refused, match="more than 0 objects; name a part of them"):
        read("koordinator", Server())
