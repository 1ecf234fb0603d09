"""`sublet config slo`: Koordinator's ConfigMap, value by value, as it holds on a node."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from services.advisor.settings import choose
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.readiness import node_config_key
from shared.core.text.yaml_text import read_yaml
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from sublet import cli
from sublet.commands import config
from sublet.configuration.slo import SloReport, report_in_force

OBJECT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config}
data:
  resource-threshold-config: |
    {"clusterStrategy": {"enable": true}, "nodeStrategies":
      [{"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}}, "cpuSuppressThresholdPercent": 50}]}
"""


def slo(text: str, *words: str) -> Result:
    Path("cm.yaml").write_text(text)
    return CliRunner().invoke(cli.build({"config": config}), ["config", "slo", "-f", "cm.yaml", *words])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def row(result: Result, field: str) -> list[str]:
    return next(line.split() for line in result.stdout.splitlines() if line.split()[1] == field)


def test_every_value_has_its_source() -> None:
    result = slo(OBJECT, "-l", "pool=hot,zone=a")
    assert result.exit_code == 0, result.output
    key = "resource-threshold-config"
    assert row(result, "cpuSuppressThresholdPercent") == [key, "cpuSuppressThresholdPercent", "50", "hot"]
    assert row(result, "cpuSuppressPolicy") == [key, "cpuSuppressPolicy", '"cpuset"', "built-in"]
    assert row(slo(OBJECT), "cpuSuppressThresholdPercent")[2:] == ["65", "built-in"]


def test_what_is_wrong_is_said_and_ends_with_an_error() -> None:
    result = slo(OBJECT.replace(": 50", ": 500").replace('"enable": true', '"enabled": true'), "-o", "json")
    assert result.exit_code == 2
    said = "resource-threshold-config.nodeStrategies.0.cpuSuppressThresholdPercent = 500: want at most 100"
    assert said in result.stderr
    assert "clusterStrategy.'enabled': no such field (ignored)" in result.stderr
    document = json.loads(result.stdout)
    assert document["problems"] == [said]
    assert document["keys"]["resource-threshold-config"]["strategy"]["enable"] is False


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("kind: Pod", (), "no ConfigMap slo-controller-config"),
        ("- 1", (), "no ConfigMap"),
        ("system-config: {a: 1}", (), "want JSON as text"),
        (OBJECT, ("-l", "pool in (a,b)"), "want the labels of one node"),
        (OBJECT, ("-l", "!pool"), "want the labels of one node"),
        (OBJECT, ("-l", "pool=="), ""),
    ],
)
def test_what_is_no_config_map_and_no_label_is_refused(text: str, words: tuple[str, ...], said: str) -> None:
    result = slo(text, *words)
    assert said in str(result.exception or result.output)
    assert (result.exit_code == 0) == (not said)


@pytest.mark.parametrize(
    ("strategy", "own"),
    [
        ({"enable": True}, {"suppress_threshold_percent": 65, "suppress_policy": "cpuset"}),
        (
            {"enable": True, "cpuSuppressThresholdPercent": 0, "cpuSuppressMinPercent": 100},
            {"suppress_threshold_percent": 0, "suppress_min_percent": 100, "suppress_policy": "cpuset"},
        ),
        (
            {"enable": True, "cpuSuppressPolicy": "cfsQuota"},
            {"suppress_threshold_percent": 65, "suppress_policy": "cfsQuota"},
        ),
    ],
)
def test_the_settings_that_mean_the_same_are_settings_of_the_advisor(
    strategy: dict[str, object], own: dict[str, object]
) -> None:
    text = json.dumps({"resource-threshold-config": json.dumps({"clusterStrategy": strategy})})
    section = read_yaml(slo(text, "--settings").stdout, what="settings", max_bytes=10_000).value["advisor"]
    assert section == {"policy": "koordinator", "policies": {"koordinator": own}}
    choice = choose(section)
    assert choice.policy.name == "koordinator"
    assert {key: getattr(choice.policy_settings, key) for key in own} == own


def test_suppression_that_is_off_is_no_setting() -> None:
    assert slo("system-config: '{}'", "--settings").stdout.strip() in ("", "{}")


async def in_force(value: bytes | None) -> SloReport:
    bus = MemoryBus()
    await bus.ensure_bucket(CONFIG_BUCKET)
    if value is not None:
        await bus.put(CONFIG_BUCKET, node_config_key("n1"), value)
    return await report_in_force(bus, "n1")


async def test_a_node_has_what_its_entry_says_over_what_is_built_in() -> None:
    said = {"resource-threshold-config": {"enable": True, "cpuSuppressThresholdPercent": 50},
            "colocation-config": {"enable": True}, "of-tomorrow": {}}  # fmt: skip
    found = await in_force(json.dumps({"advisor": {"policy": "koordinator"}, "slo": said}).encode())
    rows = [line.split() for line in found.table().splitlines()]
    assert ["resource-threshold-config", "cpuSuppressThresholdPercent", "50", "ConfigMap"] in rows
    assert ["resource-threshold-config", "cpuSuppressPolicy", '"cpuset"', "built-in"] in rows
    assert ["colocation-config", "enable", "true", "ConfigMap"] in rows
    assert {row[0] for row in rows[1:]} == {"resource-threshold-config", "colocation-config"}
    assert found.settings()["advisor"]["policies"]["koordinator"]["suppress_threshold_percent"] == 50
    assert found.lines == []


@pytest.mark.parametrize("value", [None, b"{}", b"{", b"[]", b'{"slo": 1}', b'{"advisor": {}}'])
async def test_a_node_without_any_of_it_is_said_so(value: bytes | None) -> None:
    with pytest.raises(Refused, match="node n1: nothing of a ConfigMap is in force there"):
        await in_force(value)


@pytest.mark.parametrize("words", [[], ["-f", "a", "--node", "n1"], ["--node", "n1", "-l", "a=b"]])
def test_one_of_file_and_node_is_wanted(words: list[str]) -> None:
    result = CliRunner().invoke(cli.build({"config": config}), ["config", "slo", *words])
    assert "want a ConfigMap (--file, and --labels) or a node (--node)" in str(result.exception or result.output)
