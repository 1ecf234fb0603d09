"""The NodeMetric over time, in virtual time: when it is written, by which spec, and what becomes of it in trouble."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from fixture_types import Virtual
from metered_node import GIB, ON, Node, Play, player

from services.reporter.app import ReporterApp
from services.reporter.core.mid.peaks import UsedAmounts
from services.reporter.core.mid.reclaimable import ProdReclaimable
from services.reporter.ports import ReporterPorts
from services.reporter.reports.node_metric import NO_API_SERVER, UNCHANGED_S
from services.reporter.settings import ReporterSettings
from shared.app import Context
from shared.core.api_kind import NODE_METRICS, NODES
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import CommonSettings, section
from shared.wire import Wire


class Writer:
    """A node writer that remembers."""

    def __init__(self, written: list[Mapping[str, Any]]) -> None:
        self._written = written

    async def write(self, document: Mapping[str, Any], _latest: object = None) -> None:
        self._written.append(document)


@pytest.fixture
def play(virtual: Virtual) -> Play:
    return player(virtual)


def test_it_is_made_and_written_soon_after_the_first_samples(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(8)
        assert node.status is None
        await node.measure(7)

    node = play(story)
    assert node.status is not None
    assert node.status["nodeMetric"]["nodeUsage"]["resources"] == {"cpu": "1", "memory": str(2 * GIB)}
    assert [pod["name"] for pod in node.status["podsMetric"]] == ["web"]
    assert not node.api.documents[NODE_METRICS, "", "node1"].get("spec")
    assert (node.writes, node.said) == (1, {})


def test_it_goes_with_its_node(play: Play) -> None:
    async def story(node: Node) -> None:
        node.api.put(NODES, {"metadata": {"name": "node1"}})
        await node.measure(20)

    node = play(story)
    (owner,) = node.api.documents[NODE_METRICS, "", "node1"]["metadata"]["ownerReferences"]
    uid = node.api.documents[NODES, "", "node1"]["metadata"]["uid"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": uid}


def test_at_work_it_is_written_once_a_period_and_not_more_often(play: Play) -> None:
    async def story(node: Node) -> None:
        for cores in range(1, 11):
            await node.measure(60, cores=float(cores))

    assert play(story).writes == 10


def test_at_rest_it_is_written_only_so_that_nobody_takes_it_for_expired(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(3600)

    node = play(story)
    # Windows that become complete are a change, three times.
    assert 3600 / UNCHANGED_S <= node.writes <= 3600 / UNCHANGED_S + 3


def test_old_samples_are_not_written_as_new_ones(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(15)
        await asyncio.sleep(3600)

    assert play(story).writes == 1


def test_the_spec_says_how_often_and_over_how_long(play: Play) -> None:
    spec = {"metricCollectPolicy": {"reportIntervalSeconds": 30, "aggregateDurationSeconds": 60}}

    async def story(node: Node) -> None:
        node.api.put(NODE_METRICS, {"metadata": {"name": "node1"}, "spec": spec})
        for cores in range(1, 21):
            await node.measure(30, cores=float(cores))

    node = play(story)
    assert node.writes >= 18
    assert node.status is not None
    # The mean of a minute, not of five.
    assert node.status["nodeMetric"]["nodeUsage"]["resources"]["cpu"].startswith("19")
    assert node.api.documents[NODE_METRICS, "", "node1"]["spec"] == spec


def test_a_spec_that_comes_later_is_followed_also_at_rest(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(100)
        policy = {"reportIntervalSeconds": 5, "nodeAggregatePolicy": {"durations": ["1m"]}}
        node.api.put(NODE_METRICS, {"metadata": {"name": "node1"}, "spec": {"metricCollectPolicy": policy}})
        await node.measure(200)

    node = play(story)
    assert node.status is not None
    assert [row["duration"] for row in node.status["nodeMetric"]["aggregatedNodeUsages"]] == ["1m0s"]
    assert "reportIntervalSeconds is 5: 30 is taken" in node.said["NodeMetricSpecNotFollowed"]


def test_what_another_writer_left_goes_and_is_no_second_writer(play: Play) -> None:
    async def story(node: Node) -> None:
        left = {"updateTime": "2022-01-01T00:00:00Z", "prodPeakMetric": {"resource": {}}}
        node.api.put(NODE_METRICS, {"metadata": {"name": "node1"}, "spec": {}, "status": left})
        await node.measure(20)

    node = play(story)
    assert node.status is not None
    assert "prodPeakMetric" not in node.status
    assert node.said == {}


def test_what_prod_pods_lend_is_told_where_it_is_known(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(20)
        assert node.status is not None
        assert "prodReclaimableMetric" not in node.status
        assert "prodPeakMetric" not in node.status
        node.lent = ProdReclaimable(1500, GIB, peak=UsedAmounts(2500, 3 * GIB))
        await node.measure(60)

    node = play(story)
    assert node.status is not None
    resources = {"cpu": "1500m", "memory": str(GIB)}
    assert node.status["prodReclaimableMetric"] == {"resource": {"resources": resources}}
    resources = {"cpu": "2500m", "memory": str(3 * GIB)}
    assert node.status["prodPeakMetric"] == {"resource": {"resources": resources}}
    assert node.writes == 2


def test_an_outage_is_told_and_ends_by_itself(play: Play) -> None:
    async def story(node: Node) -> None:
        node.api.go_offline()
        await node.measure(60)
        assert "away" in node.said["NodeMetricNotWritten"]
        node.api.go_online()
        await node.measure(20)

    node = play(story)
    assert (node.writes, node.said) == (1, {})


@pytest.mark.parametrize("cores", [1.0, 5.0], ids=["at rest", "at work"])
def test_an_object_that_somebody_deletes_is_made_anew(play: Play, cores: float) -> None:
    async def story(node: Node) -> None:
        await node.measure(20)
        node.api.drop(NODE_METRICS, "node1")
        await node.measure(90, cores=cores)

    node = play(story)
    assert node.status is not None
    assert node.said == {}


def test_a_kind_that_is_not_installed_is_named_with_what_to_do(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(*_: object) -> Mapping[str, Any]:
        raise Refused("404 page not found", reason="404")

    monkeypatch.setattr(MemoryObjects, "create", create)

    async def story(node: Node) -> None:
        await node.measure(30)

    assert "kubectl apply -k deploy/k8s/crds" in play(story).said["NodeMetricNotWritten"]


def test_without_the_setting_nothing_is_read_written_or_kept(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(120)

    node = play(story, settings=ReporterSettings())
    assert (node.api.asked, node.api.documents, node.report.state(), node.said) == (0, {}, None, {})


def test_it_is_switched_on_and_off_while_it_runs(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(20)
        node.report.reconfigure(ReporterSettings())
        await node.measure(300, cores=9.0)
        assert node.writes == 1
        node.report.reconfigure(ON)
        await node.measure(15, cores=9.0)
        state = node.report.state()
        assert state is not None
        # What was kept before is forgotten.
        assert (state["writes"], state["kept_bytes"] < 2000) == (2, True)

    assert play(story).writes == 2


def test_what_came_while_it_was_off_is_not_taken_for_new(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(3)
        await asyncio.sleep(3600)
        node.report.reconfigure(ON)
        await asyncio.sleep(5)
        state = node.report.state()
        assert state is not None
        assert state["kept_bytes"] == 0

    play(story, settings=ReporterSettings())


def test_while_it_is_off_it_does_not_wake_the_process(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(seconds)

    async def story(_node: Node) -> None:
        await sleep(60)

    monkeypatch.setattr(asyncio, "sleep", noted)
    play(story, settings=ReporterSettings())
    assert slept == []


def test_the_service_writes_it_and_tells_of_it(virtual: Virtual) -> None:
    async def run() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        node, bus = Node(), MemoryBus()
        raw = {"reporter": {"node_metric": {"enabled": True}}}
        context = Context(Wire(bus, node.clock, node="node1", service="reporter"), node.clock, CommonSettings(), raw)
        written: list[Mapping[str, Any]] = []
        ports = ReporterPorts(Writer(written), objects=node.api)
        app = ReporterApp(context, ports, section(ReporterSettings, raw, "reporter"))
        policy = {"metricCollectPolicy": {"reportIntervalSeconds": 1}}
        node.api.put(NODE_METRICS, {"metadata": {"name": "node1"}, "spec": policy})
        node.wire = Wire(bus, node.clock, node="node1", service="metrics")
        task = asyncio.create_task(app.run())
        await node.measure(60)
        state = app.state()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await app.close()
        assert node.status is not None
        assert "prodReclaimableMetric" in node.status
        return state["node_metric"], written[-1]

    state, document = virtual(run())
    # The second one because by then it is known what prod pods lend.
    assert (state["writes"], state["report_s"]) == (2, 30)
    types = [row["type"] for row in document["status"]["conditions"]]
    assert "NodeMetricSpecNotFollowed" in types


def test_a_host_without_an_api_server_says_so(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(30)

    assert play(story, api=False).said == {"NodeMetricNotWritten": NO_API_SERVER}
