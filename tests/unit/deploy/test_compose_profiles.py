"""What deploy/compose starts by profiles and files: names that agree, boards and rules that are there, and the wire."""

import asyncio
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[3] / "deploy/compose"
VARIABLE = re.compile(r"\$\{([A-Z_0-9]+)(?::-[^}]*)?\}")


def settings(name: str) -> dict[str, str]:
    lines = [line for line in (FOLDER / name).read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((FOLDER / "docker-compose.yaml").read_text())
    return told


def test_every_variable_has_a_default_and_a_file_changes_no_other(project: dict[str, Any]) -> None:
    defaults = settings(".env")
    asked = set(VARIABLE.findall((FOLDER / "docker-compose.yaml").read_text()))
    assert asked - {"REVISION"} == set(defaults)
    for name in ("hub3.env", "chaos.env"):
        assert set(settings(name)) - {"COMPOSE_PROFILES"} <= set(defaults), name


@pytest.mark.parametrize("name", ["hub3.env", "chaos.env"])
def test_a_node_comes_to_the_bus_by_a_service_of_the_profile(project: dict[str, Any], name: str) -> None:
    told = settings(name)
    for variable in ("NODE_A_BUS", "NODE_B_BUS"):
        assert told["COMPOSE_PROFILES"] in project["services"][told[variable]]["profiles"]
    if "NATS_CONF" in told:
        assert (FOLDER / told["NATS_CONF"]).is_file()


def test_every_file_that_is_mounted_is_there_and_read_only(project: dict[str, Any]) -> None:
    mounted = [one for service in project["services"].values() for one in service.get("volumes", []) if one[0] == "."]
    assert len(mounted) > 10
    for one in mounted:
        source, _, mode = one.split(":")
        assert ((FOLDER / source).exists(), mode) == (True, "ro"), one


def test_whoever_is_not_of_the_image_is_held_as_tightly(project: dict[str, Any]) -> None:
    for name in ("prometheus", "grafana"):
        service = project["services"][name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_prometheus_scrapes_every_service_and_knows_the_charts_rules(project: dict[str, Any]) -> None:
    told = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    targets = [one for part in told["scrape_configs"][0]["static_configs"] for one in part["targets"]]
    answering = [
        name for name, service in project["services"].items()
        if {"SUBLET_HTTP_PORT", "SUBLET_NODE"} <= set(service.get("environment", ()))
        and "profiles" not in service and not name.endswith("-machine") and name != "subscriber"
    ]  # fmt: skip
    assert sorted(targets) == sorted(f"{name}:8080" for name in answering)


def test_grafanas_files_name_a_data_source_and_boards_that_are_there() -> None:
    (source,) = yaml.safe_load((FOLDER / "grafana.yaml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (boards,) = yaml.safe_load((FOLDER / "grafana-boards.yaml").read_text())["providers"]
    assert boards["options"]["path"] == "/var/lib/boards"
    assert len(list((FOLDER.parent / "k8s/chart/monitoring/boards").glob("*.json"))) == 5


@pytest.fixture(scope="module")
def wire() -> Any:
    spec = spec_from_file_location("cut", FOLDER / "cut.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_nothing_passes_a_wire_that_is_cut_and_all_of_it_afterwards(wire: Any) -> None:
    whole = asyncio.Event()
    whole.set()
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def there(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            got.put_nowait(data)
        writer.close()
        await writer.wait_closed()
        got.put_nowait(b"end")

    async with await asyncio.start_server(there, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        source = asyncio.StreamReader()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        carrying = asyncio.create_task(wire.carry(source, writer, whole))
        source.feed_data(b"before")
        assert await got.get() == b"before"
        whole.clear()
        source.feed_data(b"during")
        for _ in range(20):
            await asyncio.sleep(0)
        assert got.empty()
        whole.set()
        assert await got.get() == b"during"
        source.feed_eof()
        await carrying
        assert await got.get() == b"end"
        await writer.wait_closed()


async def test_a_wire_is_cut_and_whole_by_turns(wire: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    whole, seen = asyncio.Event(), []
    whole.set()

    async def sleep(seconds: float) -> None:
        seen.append((seconds, whole.is_set()))
        if len(seen) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(wire.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await wire.cut(whole, 30.0, 15.0)
    assert seen == [(30.0, True), (15.0, False), (30.0, True), (15.0, False)]
    assert capsys.readouterr().out.splitlines() == ["cut 1", "whole again after cut 1", "cut 2"]
