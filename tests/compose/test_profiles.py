"""More of deploy/compose: a hub of three with leaves, wires that are cut, Prometheus. Each is up as the README says."""

import json
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any
from unittest.mock import patch

import pytest
from compose_rig.engine import Engine, EngineError, prometheus_image
from compose_rig.parts import ENGINE
from compose_rig.project import FOLDER, Project
from rig_parts import until
from slow_machines import patience_s

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

OUT = Path(__file__).parents[2] / "out/compose"
EVICTORS = {"node-a": "node-a-evictor", "node-b": "node-b"}
STORY_LIMIT_S, HEAL_LIMIT_S = 150.0, 120.0
LAST_LINES = 60
WHOLE = "the history is whole"
BOARDS = FOLDER.parent / "k8s/chart/monitoring/boards"


@contextmanager
def up(engine: Engine, name: str, *, profile: str = "", env_file: str = "") -> Iterator[Project]:
    """The project with more of it, as new; how long it took to be healthy is kept in out/compose."""
    plain, project = Project(engine), Project.with_more(engine, profile=profile, env_file=env_file)
    project.down()
    try:
        plain.build()  # the image, so that what is measured builds nothing
        plain.down()
        seconds = project.up()
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{name}-up.txt").write_text(
            f"{name}: {len(project.containers())} containers healthy in {seconds:.0f} s\n"
        )
        print((OUT / f"{name}-up.txt").read_text(), end="")
        yield project
    except CalledProcessError as error:
        raise AssertionError(f"{error}\n{project.last_words()}") from error
    finally:
        project.down()
        assert project.left() == []


def succeeded(project: Project, node: str) -> int | None:
    """How many evictions a node has told the end of: central reaches the bus without a leaf or a wire between.

    None while nobody answers: one of the hub's servers has gone, and the others choose a leader.
    """
    try:
        said = project.exec("central", "sublet", "events", "--phase", "succeeded", "-o", "json")
    except CalledProcessError:
        return None
    return sum(str(json.loads(line)["node"]) == node for line in said.splitlines())


def wait_for_another(project: Project, node: str) -> None:
    counts: list[int] = []

    def more() -> bool:
        count = succeeded(project, node)
        counts.extend([] if count is None else [count])
        return len(counts) > 1 and counts[-1] > counts[0]

    try:
        until(more, STORY_LIMIT_S, f"another eviction on {node}")
    except TimeoutError as error:
        said = "\n".join(project.logs(EVICTORS[node])[-LAST_LINES:])
        raise AssertionError(f"{error}; counted {counts}; its evictor said last:\n{said}") from error


class TestHubOfThree:
    @pytest.fixture(scope="class")
    @classmethod
    def project(cls, engine: Engine) -> Iterator[Project]:
        with up(engine, "hub3", env_file="hub3.env") as project:
            yield project

    @staticmethod
    def monitored(project: Project, service: str, path: str) -> dict[str, Any]:
        """What a server's monitoring says."""
        read = f"import urllib.request as w; print(w.urlopen('http://127.0.0.1:8222/{path}').read().decode())"
        told: dict[str, Any] = json.loads(project.exec(service, "python", "-c", read))
        return told

    def test_three_servers_keep_each_stream_and_each_node_comes_by_its_leaf(self, project: Project) -> None:
        streams = self.monitored(project, "nats", "jsz?streams=1&config=1")["account_details"]
        found = {one["name"]: one["config"]["num_replicas"] for account in streams for one in account["stream_detail"]}
        assert {"SUBLET_EVENTS", "SUBLET_INTENTS"} <= set(found)
        assert set(found.values()) == {3}, found
        leaves = [
            one["name"]
            for hub in ("nats", "nats-2", "nats-3")
            for one in self.monitored(project, hub, "leafz")["leafs"] or ()
        ]
        assert sorted(leaves) == ["leaf-a", "leaf-b"]
        for leaf, services in (("leaf-a", 5), ("leaf-b", 1)):
            assert self.monitored(project, leaf, "connz")["num_connections"] >= services

    @pytest.mark.parametrize("node", EVICTORS)
    def test_evictions_reach_the_hub(self, project: Project, node: str) -> None:
        wait_for_another(project, node)

    def test_the_hub_goes_on_without_one_of_its_servers(self, project: Project) -> None:
        project.kill("nats-2")
        for node in EVICTORS:
            wait_for_another(project, node)
        project.engine.docker("start", str(project.compose.get_container("nats-2", include_all=True).ID))
        until(lambda: project.healthy("nats-2"), HEAL_LIMIT_S, "the server that was killed being healthy")

    @pytest.mark.parametrize("node", EVICTORS)
    def test_nothing_was_lost(self, project: Project, node: str) -> None:
        assert WHOLE in project.exec(EVICTORS[node], "sublet", "audit")


class TestCutWires:
    @pytest.fixture(scope="class")
    @classmethod
    def project(cls, engine: Engine) -> Iterator[Project]:
        with up(engine, "chaos", env_file="chaos.env") as project:
            yield project

    @pytest.mark.parametrize("node", EVICTORS)
    def test_evictions_are_told_and_nothing_is_lost_although_the_wire_is_cut(self, project: Project, node: str) -> None:
        wire = f"cut-{node[-1]}"

        def cuts() -> int:
            return sum(line.startswith("whole again") for line in project.logs(wire))

        wait_for_another(project, node)
        before = cuts()
        until(lambda: cuts() >= before + 2, STORY_LIMIT_S, f"two more cuts of {wire}")
        wait_for_another(project, node)

        def whole() -> bool:
            try:
                return WHOLE in project.exec(EVICTORS[node], "sublet", "audit")
            except CalledProcessError:  # the wire is cut, or what waited during a cut is not sent yet
                return False

        until(whole, HEAL_LIMIT_S, f"the audit of {node} finding the history whole")


class TestMonitoring:
    @pytest.fixture(scope="class")
    @classmethod
    def project(cls, engine: Engine) -> Iterator[Project]:
        image = prometheus_image(engine, ENGINE.cache_folder(), os.environ["BASE"], print)
        with (
            patch.dict(os.environ, {"PROMETHEUS_IMAGE": image}),
            up(engine, "monitoring", profile="monitoring") as project,
        ):
            yield project

    @staticmethod
    def ask(expr: str) -> list[dict[str, Any]]:
        """The series that an expression gives, as this machine may ask."""
        url = f"http://127.0.0.1:{os.environ['PROMETHEUS_PORT']}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
        try:
            with urllib.request.urlopen(url, timeout=patience_s(10)) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return found

    def test_every_service_is_scraped_and_the_rules_have_data(self, project: Project) -> None:
        until(lambda: len(self.ask("up{job='sublet'} == 1")) == 7, STORY_LIMIT_S, "seven targets that answer")
        for expr in ("sublet_node_cpu_reclaimable_cores", "sublet:reclaimable_cores:sum", "sublet_build_info"):
            until(lambda expr=expr: self.ask(expr), STORY_LIMIT_S, f"data of {expr}")  # type: ignore[misc]


class TestGrafana:
    @pytest.fixture(scope="class")
    @classmethod
    def project(cls, engine: Engine) -> Iterator[Project]:
        (default,) = re.findall(r"^GRAFANA_IMAGE=(\S+)$", (FOLDER / ".env").read_text(), re.MULTILINE)
        image = os.environ.get("GRAFANA_IMAGE", default)
        try:
            engine.docker("pull", "--quiet", image)
        except EngineError as lack:
            pytest.skip(f"{image} cannot be had from here, and nothing else is Grafana: {str(lack).splitlines()[-1]}")
        prometheus = prometheus_image(engine, ENGINE.cache_folder(), os.environ["BASE"], print)
        with (
            patch.dict(os.environ, {"PROMETHEUS_IMAGE": prometheus}),
            up(engine, "grafana", profile="monitoring,grafana") as project,
        ):
            yield project

    def test_every_board_of_the_chart_is_there(self, project: Project) -> None:
        def titles() -> set[str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['GRAFANA_PORT']}/api/search") as answer:
                    return {str(one["title"]) for one in json.load(answer)}
            except OSError:
                return set()

        wanted = {str(json.loads(path.read_text())["title"]) for path in BOARDS.glob("*.json")}
        assert len(wanted) == 5
        until(lambda: wanted <= titles(), STORY_LIMIT_S, f"the boards {sorted(wanted)}")
