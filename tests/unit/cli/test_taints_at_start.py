"""A tainted node takes no new reclaimed pods: what `run`, `apply` and `get node` say, without a kernel."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pods_rig import record
from typer.testing import CliRunner, Result

from shared.adapters.files.taints import TaintFile
from shared.adapters.local.runtime import Runtime
from shared.contracts.kube.taint import Cause, Taint
from shared.core.pods.manifest import read_pod
from shared.core.pods.qos import QOS_LEVEL
from shared.errors import Refused, Unavailable
from shared.settings import CommonSettings
from sublet import cli
from sublet.commands import apply, get, run
from sublet.pods.taints import require_untainted

MODULES = {"run": run, "apply": apply, "get": get}
KEY = "node.katalyst.kubewharf.io/MemoryPressure"
TAINT = Taint(
    key=KEY,
    effect="NoSchedule",
    time_added=datetime(2023, 1, 9, 6, 32, 8, tzinfo=UTC),
    causes=(Cause(plugin="memory-pressure-eviction-plugin", scope="memory", observed=1e9, threshold=2e9),),
)
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: encode, annotations: {{{QOS_LEVEL}: reclaimed_cores}}}}
spec: {{containers: [{{name: main, command: ["true"]}}]}}
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A runtime that is up, in generated folders."""
    (tmp_path / "root/sys/fs/cgroup/cpuset/sublet/reclaimed_cores").mkdir(parents=True)
    monkeypatch.setenv("SUBLET_NODE", "node1")
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBLET_HOST_ROOT", str(tmp_path / "root"))
    (tmp_path / "state").mkdir()
    return Runtime(CommonSettings(state_dir=tmp_path / "state", host_root=tmp_path / "root"))


@pytest.fixture
def taint(node: Runtime) -> Callable[..., Any]:
    def put(**over: Any) -> None:
        entry = TAINT.model_copy(update=over).document()
        TaintFile(node.common.state_dir).path.write_text(json.dumps({"taints": [entry]}))

    return put


def sublet(*arguments: Any, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.build(MODULES), list(arguments), input=stdin)


def test_the_refusal_says_what_since_when_why_and_what_to_do(node: Runtime, taint: Callable[..., Any]) -> None:
    taint()
    with pytest.raises(Refused) as refused:
        require_untainted(node, [record("web", qos="shared_cores"), record("encode")])
    assert refused.value.reason == "tainted"
    assert str(refused.value) == (
        f"pod default/encode: this node takes no reclaimed pods now: {KEY}:NoSchedule since 2023-01-09T06:32:08Z "
        "(memory-pressure-eviction-plugin, memory: observed 1000000000, threshold 2000000000); the taint goes when the "
        "pressure has been gone for a while (evictor.condition_transition_s): wait, and look with: sublet status"
    )


@pytest.mark.parametrize("qos", ["shared_cores", "dedicated_cores"])
def test_tenants_are_not_kept_away(node: Runtime, taint: Callable[..., Any], qos: str) -> None:
    taint()
    require_untainted(node, [record("web", qos=qos)])


@pytest.mark.parametrize(
    ("over", "kept_away"),
    [
        ({}, True), ({"effect": "NoExecute"}, True), ({"effect": "PreferNoSchedule"}, False),
        ({"key": "example.org/upgrade", "causes": (), "time_added": None}, True),
    ],
)  # fmt: skip
def test_which_taints_keep_batch_pods_away(
    node: Runtime, taint: Callable[..., Any], over: dict[str, Any], kept_away: bool
) -> None:
    taint(**over)
    if not kept_away:
        require_untainted(node, [record("encode")])
        return
    with pytest.raises(Refused, match=over.get("key", KEY)):
        require_untainted(node, [record("encode")])


def test_a_node_without_taints_takes_them(node: Runtime) -> None:
    require_untainted(node, [record("encode")])


@pytest.mark.parametrize("break_it", [lambda path: path.write_text("{"), lambda path: path.mkdir()])
def test_where_the_taints_cannot_be_read_a_batch_pod_is_refused_and_a_tenant_is_not(
    node: Runtime, break_it: Callable[..., Any]
) -> None:
    path = TaintFile(node.common.state_dir).path
    break_it(path)
    with pytest.raises(Refused, match=r"nobody can say.*taints\.json") as refused:
        require_untainted(node, [record("encode")])
    assert refused.value.reason == "taints_unknown"
    require_untainted(node, [record("web", qos="shared_cores")])


def test_a_taint_that_was_left_is_not_what_is_said_where_sublet_is_not_up(
    node: Runtime, taint: Callable[..., Any]
) -> None:
    taint()
    (node.common.host_root / "sys/fs/cgroup/cpuset/sublet/reclaimed_cores").rmdir()
    require_untainted(node, [record("encode")])
    assert "sudo sublet up" in sublet("run", "--", "true").stderr


def test_run_ends_with_125_and_apply_is_refused_and_nothing_is_left(node: Runtime, taint: Callable[..., Any]) -> None:
    taint()
    result = sublet("run", "--", "true")
    assert (result.exit_code, result.stderr.startswith("sublet: pod default/true-")) == (125, True)
    assert "takes no reclaimed pods" in result.stderr
    assert isinstance(sublet("apply", "-f", "-", stdin=POD).exception, Refused)
    assert node.pods.stored() == []


def test_apply_leaves_a_batch_pod_that_runs_alone(node: Runtime, taint: Callable[..., Any]) -> None:
    node.pods.add(read_pod(yaml.safe_load(POD), "abc").record)
    taint()
    assert sublet("apply", "-f", "-", stdin=POD).stdout == "pod/encode unchanged\n"


def test_get_node_prints_the_taints_as_the_tutorial_does(node: Runtime, taint: Callable[..., Any]) -> None:
    assert sublet("get", "node").stdout.splitlines()[1].split() == ["node1", "-", "-", "-", "-"]
    taint()
    text = sublet("get", "node", "-o", "yaml").stdout
    assert text.endswith(f'taints:\n  - effect: NoSchedule\n    key: {KEY}\n    timeAdded: "2023-01-09T06:32:08Z"\n')
    document = json.loads(sublet("get", "node", "-o", "json").stdout)
    assert (document["kind"], document["metadata"]["name"]) == ("Node", "node1")
    assert yaml.safe_load(text) == document
    row = sublet("get", "node").stdout.splitlines()[1]
    assert row.split()[:3] == ["node1", KEY, "NoSchedule"]
    assert row.endswith("memory-pressure-eviction-plugin, memory: observed 1000000000, threshold 2000000000")


def test_get_node_says_so_where_the_taints_cannot_be_read(node: Runtime) -> None:
    TaintFile(node.common.state_dir).path.write_text("{")
    assert isinstance(sublet("get", "node").exception, Unavailable)
