"""NodeTaints on a file, in memory and on an API server: ours are replaced, others' stay, trouble is no empty answer."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kube_api import Api, FakeKube

from shared.adapters.clock import LoopClock
from shared.adapters.files.taints import TaintFile
from shared.adapters.kube.client import KubeRequest
from shared.adapters.kube.evictor import MANAGER
from shared.adapters.kube.node import CNRS
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.kube.taints import TRIES, KubeTaints
from shared.contracts.kube.taint import Cause, Taint
from shared.errors import Refused, Unavailable
from shared.fakes.fake_taints import FakeTaints

KEY = "node.katalyst.kubewharf.io/"
ADDED = datetime(2023, 1, 9, 6, 32, 8, tzinfo=UTC)
MEMORY = Taint(
    key=f"{KEY}MemoryPressure",
    effect="NoSchedule",
    time_added=ADDED,
    causes=(Cause(plugin="memory-pressure-eviction-plugin", scope="memory", observed=1.5, threshold=2),),
)
CPU = Taint(key=f"{KEY}CPUPressure", effect="NoSchedule", time_added=ADDED)
FOREIGN = {"key": "example.org/upgrade", "effect": "NoExecute", "value": "by hand"}


class InFile:
    """The port over a file."""

    def __init__(self, folder: Path) -> None:
        self.port, self.path = TaintFile(folder), folder / "taints.json"

    def taint_by_hand(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"taints": [FOREIGN]}))

    def foreign(self) -> list[dict[str, str]]:
        return [entry for entry in json.loads(self.path.read_text())["taints"] if not entry["key"].startswith(KEY)]

    def break_it(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("{")


class InMemory:
    """The port in memory."""

    def __init__(self, _folder: Path) -> None:
        self.port = FakeTaints()

    def taint_by_hand(self) -> None:
        self.port.taints.append(Taint.model_validate(FOREIGN))

    def foreign(self) -> list[dict[str, str]]:
        return [FOREIGN for taint in self.port.taints if taint == Taint.model_validate(FOREIGN)]

    def break_it(self) -> None:
        self.port.failure = "no API server"


NODE = "/api/v1/nodes/n1"


class InCluster:
    """The port over a Node of an API server, which has no place for causes."""

    def __init__(self, _folder: Path | None) -> None:
        self.api = Api()
        self.api.put(NODE, {"spec": {"podCIDR": "10.0.0.0/24"}})
        self.port = KubeTaints(FakeKube(self.api), "n1")

    @property
    def listed(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.api.objects[NODE]["spec"].get("taints", [])
        return found

    def taint_by_hand(self, *more: Any) -> None:
        spec = {"podCIDR": "10.0.0.0/24", "taints": [FOREIGN, *more]}
        self.api.put(NODE, {"spec": spec})

    def foreign(self) -> list[dict[str, str]]:
        return [entry for entry in self.listed if not entry["key"].startswith(KEY)]

    def break_it(self) -> None:
        self.api.failing = 503


@pytest.fixture(params=[InFile, InMemory, InCluster])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> InCluster | InFile | InMemory:
    made: InCluster | InFile | InMemory = request.param(tmp_path / "state")
    return made


def bare(taint: Taint) -> Taint:
    """Without what not every substrate keeps."""
    return taint.model_copy(update={"causes": ()})


async def test_before_the_first_write_there_are_none(place: InCluster | InFile | InMemory) -> None:
    assert await place.port.read() == ()


async def test_what_was_written_is_read_in_order(place: InCluster | InFile | InMemory) -> None:
    await place.port.write([MEMORY, CPU])
    assert [bare(taint) for taint in await place.port.read()] == [CPU, bare(MEMORY)]


async def test_a_write_replaces_all_of_ours(place: InCluster | InFile | InMemory) -> None:
    await place.port.write([MEMORY, CPU])
    await place.port.write([MEMORY])
    assert [bare(taint) for taint in await place.port.read()] == [bare(MEMORY)]
    await place.port.write([])
    assert await place.port.read() == ()


async def test_the_taints_of_others_are_neither_shown_nor_touched(place: InCluster | InFile | InMemory) -> None:
    place.taint_by_hand()
    assert await place.port.read() == ()
    await place.port.write([CPU])
    await place.port.write([])
    assert place.foreign() == [FOREIGN]


async def test_a_taint_under_another_prefix_is_refused_and_nothing_is_written(
    place: InCluster | InFile | InMemory,
) -> None:
    await place.port.write([CPU])
    with pytest.raises(Refused, match=r"example\.org/x"):
        await place.port.write([MEMORY, CPU.model_copy(update={"key": "example.org/x"})])
    assert await place.port.read() == (CPU,)


async def test_trouble_is_an_error_never_an_empty_answer(place: InCluster | InFile | InMemory) -> None:
    await place.port.write([CPU])
    place.break_it()
    with pytest.raises(Unavailable):
        await place.port.read()
    with pytest.raises(Unavailable):
        await place.port.write([])


TORN = ["", "{", "[]", "{}", '{"taints": {}}', '{"taints": [1]}', '{"taints": [{"key": "a"}]}',
        '{"taints": [{"key": "a", "effect": "Evict"}]}', '{"taints": null}']  # fmt: skip


@pytest.mark.parametrize("text", TORN)
async def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    taints = TaintFile(tmp_path)
    taints.path.write_text(text)
    with pytest.raises(Unavailable, match=r"taints\.json"):
        taints.standing()
    with pytest.raises(Unavailable):
        await taints.write([CPU])
    assert taints.path.read_text() == text


async def test_a_folder_that_cannot_be_written_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("no folder")
    with pytest.raises(Unavailable):
        await TaintFile(tmp_path / "taken").write([CPU])


async def test_the_file_is_in_the_tutorials_form_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    taints = TaintFile(tmp_path)
    await taints.write([CPU])
    told = {"effect": "NoSchedule", "key": f"{KEY}CPUPressure", "timeAdded": "2023-01-09T06:32:08Z"}
    assert json.loads(taints.path.read_text()) == {"taints": [told]}
    assert [path.name for path in tmp_path.iterdir()] == ["taints.json"]
    assert taints.path.stat().st_mode & 0o777 == 0o640


@pytest.fixture
def cluster() -> InCluster:
    return InCluster(None)


async def test_a_node_is_written_only_where_its_taints_differ_and_the_rest_of_it_stays(cluster: InCluster) -> None:
    await cluster.port.write([CPU])
    await cluster.port.write([CPU])
    told = {"effect": "NoSchedule", "key": f"{KEY}CPUPressure", "timeAdded": "2023-01-09T06:32:08Z"}
    assert cluster.listed == [told]
    assert [method for method, _, _ in cluster.api.requests].count("PATCH") == 1
    await cluster.port.write([])
    assert cluster.api.objects[NODE]["spec"] == {"podCIDR": "10.0.0.0/24"}


async def test_a_taint_that_comes_between_reading_and_writing_is_not_lost(cluster: InCluster) -> None:
    cluster.api.before_write = cluster.taint_by_hand
    await cluster.port.write([CPU])
    assert cluster.foreign() == [FOREIGN]
    assert await cluster.port.read() == (CPU,)


async def test_who_loses_every_race_says_so_and_has_changed_nothing(cluster: InCluster) -> None:
    def again() -> None:
        cluster.taint_by_hand()
        cluster.api.before_write = again

    again()
    with pytest.raises(Unavailable, match=f"{TRIES} times"):
        await cluster.port.write([CPU])
    assert cluster.listed == [FOREIGN]


@pytest.mark.parametrize("code", [401, 403, 404, 422, 429, 500, 503])
async def test_a_refusal_is_unavailable_with_the_servers_words(cluster: InCluster, code: int) -> None:
    cluster.api.refuse["PATCH", NODE] = code
    with pytest.raises(Unavailable, match="the test says so"):
        await cluster.port.write([CPU])
    assert cluster.listed == []


async def test_a_node_that_is_not_there_or_holds_no_taints_is_no_untainted_node(cluster: InCluster) -> None:
    cluster.taint_by_hand({"key": 5})
    with pytest.raises(Unavailable, match="cannot be read"):
        await cluster.port.read()
    cluster.api.remove(NODE)
    with pytest.raises(Unavailable, match="not found"):
        await cluster.port.read()
    cluster.api.away = True
    with pytest.raises(Unavailable, match="no answer"):
        await cluster.port.read()


CNR = f"{CNRS}/n1"


@pytest.fixture
def told(cluster: InCluster) -> InCluster:
    """A cluster with the node's CNR beside it."""
    kube = FakeKube(cluster.api)
    cluster.port = KubeTaints(kube, "n1", KubeObjects(kube, LoopClock(), manager=MANAGER))
    cluster.api.put(CNR, {"spec": {"taints": [FOREIGN]}})
    return cluster


def said(cluster: InCluster) -> list[dict[str, str]]:
    found: list[dict[str, str]] = cluster.api.objects[CNR]["spec"].get("taints", [])
    return found


async def test_the_cnr_says_ours_as_the_tutorial_prints_it_beside_those_of_others(told: InCluster) -> None:
    await told.port.show([MEMORY, CPU])
    row = {"effect": "NoSchedule", "timeAdded": "2023-01-09T06:32:08Z"}
    assert said(told) == [FOREIGN, {"key": f"{KEY}CPUPressure", **row}, {"key": f"{KEY}MemoryPressure", **row}]
    await told.port.show([MEMORY])
    assert said(told) == [FOREIGN, {"key": f"{KEY}MemoryPressure", **row}]
    await told.port.show([])
    assert said(told) == [FOREIGN]


async def test_the_cnr_is_written_where_it_differs_and_without_taints_not_even_read(told: InCluster) -> None:
    await told.port.show([CPU])
    await told.port.show([CPU])
    assert [method for method, path, _ in told.api.requests if path == CNR] == ["GET", "PATCH", "GET"]
    told.api.put(CNR, {"spec": {}})
    await told.port.show([CPU])
    assert [row["key"] for row in said(told)] == [CPU.key]
    await told.port.show([])
    before = len(told.api.requests)
    await told.port.show([])
    assert len(told.api.requests) == before


async def test_what_a_former_life_has_left_in_the_cnr_under_another_name_goes(told: InCluster) -> None:
    left = {"key": f"{KEY}CPUPressure", "effect": "NoSchedule"}
    told.api.put(CNR, {"spec": {"taints": [left, FOREIGN]}})
    await told.port.show([])
    assert said(told) == [FOREIGN]


async def test_a_node_without_a_cnr_gets_one_for_a_taint_alone(told: InCluster) -> None:
    told.api.remove(CNR)
    await told.port.show([])
    assert CNR not in told.api.objects
    await told.port.show([CPU])
    assert [row["key"] for row in said(told)] == [CPU.key]


async def test_a_taint_whose_showing_lost_its_answer_is_taken_from_the_nodes_object() -> None:
    class LosesAnswers(FakeKube):
        lost = 0

        async def send(self, request: KubeRequest) -> dict[str, Any]:
            answer = await super().send(request)
            if self.lost and request.method == "PATCH" and request.path.startswith(CNRS):
                self.lost -= 1
                raise Unavailable("the answer got lost")
            return answer

    api = Api()
    kube = LosesAnswers(api)
    taints = KubeTaints(kube, "n1", KubeObjects(kube, LoopClock(), manager=MANAGER))
    await taints.show(())
    kube.lost = 1
    with pytest.raises(Unavailable):
        await taints.show((MEMORY,))
    assert [row["key"] for row in api.objects[f"{CNRS}/n1"]["spec"]["taints"]] == [MEMORY.key]
    await taints.show(())
    assert not api.objects[f"{CNRS}/n1"].get("spec", {}).get("taints")
