"""Objects of another system as nobody means them: planning ends, and takes nothing wrong over."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from odd_documents import DEEP, odd_documents

from shared.errors import Conflict, Refused
from sublet.migrate.plan.objects import MAX_OBJECTS, objects_of, read_objects
from sublet.migrate.plan.printing import plan_table, values_text
from sublet.migrate.plan.systems import PLANNERS
from sublet.migrate.takeover.own_mode import Installed, own_mode
from sublet.migrate.takeover.preparations import ClusterDocuments, preparations, require_own_config

AGENTS = {
    name: {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": name, "args": args}]}}},
    }
    for name, args in (
        ("koordlet", ["-feature-gates=AllAlpha=true", "--cpu-evict-cool-time-seconds", "5"]),
        ("katalyst-agent", ["--eviction-load-enable", "--eviction-load-upper-bound-ratio=3", "--enable-reclaim=true"]),
    )
}
GOOD: list[dict[str, Any]] = [
    *AGENTS.values(),
    {
        "kind": "ConfigMap",
        "metadata": {"name": "slo-controller-config"},
        "data": {
            "colocation-config": json.dumps({"enable": True, "cpuReclaimThresholdPercent": 50}),
            "resource-threshold-config": json.dumps({"clusterStrategy": {"enable": True, "cpuEvictPolicy": "x"}}),
        },
    },
    {"kind": "ClusterColocationProfile", "metadata": {"name": "p"}, "spec": {"qosClass": "BE", "probability": "5%"}},
    {"kind": "Node", "metadata": {"name": "n", "labels": {"node.koordinator.sh/cpu-reclaim-ratio": "1"}}},
    {"kind": "NodeSLO", "metadata": {"name": "n"}, "spec": {"resourceUsedThresholdWithBE": {"enable": False}}},
    {
        "apiVersion": "config.katalyst.kubewharf.io/v1alpha1",
        "kind": "AdminQoSConfiguration",
        "metadata": {"name": "c"},
        "spec": {"config": {"evictionConfig": {"dryRun": ["*"], "cpuPressureEvictionConfig": {"gracePeriod": 1}}}},
    },
    {"kind": "KatalystCustomConfig", "metadata": {"name": "k"}, "spec": {"targetType": {"resource": "x"}}},
    {"kind": "NodeList", "items": [{"metadata": {"name": "n2"}}]},
]
SCHEMA = Path(__file__).parents[3] / "deploy/k8s/chart/values.schema.json"


@pytest.mark.parametrize("system", sorted(PLANNERS))
def test_odd_objects_never_end_a_plan_and_never_make_values_that_the_chart_refuses(system: str) -> None:
    schema = json.loads(SCHEMA.read_text())
    validator = Draft202012Validator({**schema, "required": []})
    for name, document in odd_documents(GOOD, 80, seed=23):
        others = [one for one in GOOD if one["kind"] != document.get("kind")]
        plan = PLANNERS[system](objects_of([document, *others], "here"))
        assert plan_table(plan, wide=False), name
        values = yaml.safe_load(values_text(plan))
        assert [error.message for error in validator.iter_errors(values)] == [], name


OBJECTS: list[dict[str, Any]] = [
    {
        "metadata": {"name": "k", "namespace": "n", "uid": "u"},
        "spec": {
            "targetType": {"resource": "adminqosconfigurations"},
            "nodeLabelSelectorAllowedKeyList": [{"priority": 0, "keyList": ["pool"]}],
            "nodeLabelSelector": "pool=a",
            "ephemeralSelector": {"nodeNames": ["n1"], "lastDuration": "1h"},
            "config": {"sublet": {"mode": "observe"}},
            "template": {
                "spec": {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                            }
                        }
                    }
                }
            },
        },
        "data": {"resource-threshold-config": '{"nodeStrategies": [{"name": "x"}]}'},
    }
]


def test_odd_objects_of_a_cluster_are_prepared_or_refused_in_words() -> None:
    """Whatever stands in one of them: the plan of changes is made, or ends in one sentence, and never in a fault."""
    for name, one in odd_documents(OBJECTS, 600, seed=29):
        there = ClusterDocuments("sublet-system", [one], [one], [one], one)
        try:
            require_own_config(there, "n1", {"pool": "a"})
            changes = preparations(there)
        except Conflict:
            continue
        assert all(json.dumps(change.body) for change in changes), name


def test_odd_objects_of_ours_say_one_of_both_modes() -> None:
    whole = {
        "data": {"config.yaml": "mode: observe", "settings.yaml": "mode: observe"},
        "spec": {"template": {"spec": {"containers": [{"env": [{"name": "SUBLET_MODE", "value": "observe"}]}]}}},
    }
    for name, one in odd_documents([whole], 300, seed=31):
        assert own_mode(Installed(one, one, one)) in ("observe", "enforce"), name
    for text in (
        "&a [*a]",
        "[" * 5000,
        "mode: !!python/object:os.system x",
        "mode: observe\nmode: enforce",
        "x" * (2 << 20),
    ):
        seen = {"data": {"config.yaml": text}}
        assert own_mode(Installed(seen, {"data": {"settings.yaml": "mode: observe"}})) == "observe", text[:40]


def test_lists_in_lists_and_many_objects_are_bounded() -> None:
    deep: dict[str, Any] = {"kind": "Node", "metadata": {"name": "n"}}
    for _ in range(DEEP):
        deep = {"kind": "List", "items": [deep]}
    assert objects_of([deep], "here") == []
    with pytest.raises(Refused, match=f"more than {MAX_OBJECTS} objects"):
        objects_of([{"kind": "Node", "metadata": {"name": str(n)}} for n in range(MAX_OBJECTS + 1)], "here")


@pytest.mark.parametrize(
    "text", ["a: [", "- 1\n- 2\n", "kind: Node\n", "x: &x [*x]\n", "kind: 3\nmetadata: {name: a}\n"]
)
def test_a_file_without_objects_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(Refused):
        read_objects([str(tmp_path)])
