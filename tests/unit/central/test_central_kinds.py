"""Central's what-if kinds: worked examples, and the rules one by one."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shared.errors import Refused
from shared.whatif.decisions import decisions
from sublet.whatif import kinds

kinds()  # each registers its kinds
AREAS = ("central", "kcc")
KINDS = {name for name, kind in decisions().items() if kind.area in AREAS and "central" in kind.function.__module__}
FOLDER = Path(__file__).parents[2] / "cases"
CASES = [json.loads(line) for area in AREAS for line in (FOLDER / f"{area}.jsonl").read_text().splitlines()]
OWN_CASES = [case for case in CASES if case["kind"] in KINDS]


def ask(kind: str, inputs: dict[str, Any]) -> dict[str, Any]:
    found = decisions()[kind]
    answer: dict[str, Any] = found.function(found.inputs.model_validate_json(json.dumps(inputs))).model_dump(
        mode="json"
    )
    return answer


def holds(wanted: Any, found: Any) -> bool:
    """Of objects only what is wanted."""
    if isinstance(wanted, dict):
        return all(key in found and holds(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)


@pytest.mark.parametrize("case", OWN_CASES, ids=lambda case: case["id"])
def test_worked_case_is_answered_as_printed(case: dict[str, Any]) -> None:
    answer = ask(case["kind"], case["inputs"])
    assert holds(case["outputs"], answer), answer


def test_every_kind_has_a_worked_case() -> None:
    assert {case["kind"] for case in OWN_CASES} == KINDS
    assert len(KINDS) == 21


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (0, 0, "Normal"),
        (0, 1, "FullDisruption"),
        (1, 2, "Normal"),
        (1, 3, "PartialDisruption"),
        (12, 3, "Normal"),
        (11, 3, "PartialDisruption"),
        (100, 0, "Normal"),
    ],
)
def test_cluster_state_by_counts(ready: int, not_ready: int, state: str) -> None:
    answer = ask("cluster_state", {"ready_nodes": ready, "not_ready_nodes": not_ready})
    assert answer == {"state": state, "actions_per_s": 0.1 if state == "Normal" else 0.0}


OURS = {"key": "node.kubernetes.io/unschedulable", "effect": "NoScheduleForReclaimedTasks"}
LATER = {"key": OURS["key"], "effect": "NoSchedule", "qos_level": "reclaimed_cores"}
FOREIGN = {"key": OURS["key"], "effect": "NoSchedule"}
OTHER = {"key": "example.com/x", "value": "v", "effect": OURS["effect"]}


@pytest.mark.parametrize(
    ("taints", "lost", "want", "changed"),
    [
        pytest.param([], False, [], False, id="well and clean"),
        pytest.param([FOREIGN, OTHER], True, [FOREIGN, OTHER, OURS], True, id="ours is added last"),
        pytest.param([OURS], True, [OURS], False, id="there already"),
        pytest.param([OURS, OTHER], True, [OTHER, OURS], False, id="a move is no change"),
        pytest.param([LATER], True, [LATER], False, id="there in the later shape"),
        pytest.param([LATER, OURS], True, [LATER], True, id="once is enough"),
        pytest.param([OTHER, LATER, FOREIGN], False, [OTHER, FOREIGN], True, id="taken away in the later shape"),
        pytest.param([OURS | {"value": "x"}], False, [], True, id="whatever its value"),
        pytest.param([OTHER], False, [OTHER], False, id="foreign ones stay"),
    ],
)
def test_the_taint_of_a_lost_node(
    taints: list[dict[str, str]], lost: bool, want: list[dict[str, str]], changed: bool
) -> None:
    assert ask("lost_node_taint", {"taints": taints, "lost": lost}) == {"taints": want, "changed": changed}


@pytest.mark.parametrize(
    ("agents", "not_found", "ready"),
    [
        ({}, ("False", "AllAgentsFound"), ("True", "AllAgentsReady")),
        ({"a": "Ready", "b": "Ready"}, ("False", "AllAgentsFound"), ("True", "AllAgentsReady")),
        ({"a": "Ready", "b": "NotFound"}, ("True", "withAgentsNotFound"), ("Unknown", "WithAgentsUnknown")),
        ({"a": "NotReady", "b": "NotFound"}, ("True", "withAgentsNotFound"), ("False", "WithAgentsNotReady")),
    ],
)
def test_conditions_from_agents(agents: dict[str, str], not_found: tuple[str, str], ready: tuple[str, str]) -> None:
    answer = ask("agent_conditions", {"agents": agents})
    assert tuple(answer["AgentNotFound"].values()) == not_found
    assert tuple(answer["AgentReady"].values()) == ready
    assert answer["ready"] is (ready[0] == "True")


@pytest.mark.parametrize(
    ("inputs", "evict"),
    [
        ({"not_ready_s": 1200}, []),
        ({"not_ready_s": 1200.1}, ["a", "b"]),
        ({"not_ready_s": 9999, "tainted": False}, []),
        ({"not_ready_s": 61, "evict_period_s": 60}, ["a", "b"]),
        ({"not_ready_s": 61, "evict_period_s": 60, "tainted": False}, []),
        ({"not_ready_s": 1201, "pods": []}, []),
    ],
    ids=["at the bound", "beyond it", "not tainted", "a shorter period", "never before the taint", "no pods"],
)
def test_pods_of_a_lost_node(inputs: dict[str, Any], evict: list[str]) -> None:
    pods = [
        {"name": n, "qos": q} for n, q in (("b", "reclaimed_cores"), ("t", "shared_cores"), ("a", "reclaimed_cores"))
    ]
    assert ask("lost_node_evictions", {"tainted": True, "pods": pods} | inputs) == {"evict": evict}


@pytest.mark.parametrize(
    ("rate", "burst", "count", "at_s"),
    [
        (0.1, 1, 4, [0, 10, 20, 30]),
        (0.1, 3, 5, [0, 0, 0, 10, 20]),
        (0.4, 1, 4, [0, 3, 5, 8]),
        (0.3, 1, 4, [0, 3, 7, 10]),
        (0, 5, 3, []),
        (1, 0, 3, []),
        (1, 1, 0, []),
    ],
)
def test_paced_actions(rate: float, burst: int, count: int, at_s: list[int]) -> None:
    assert ask("paced_actions", {"actions_per_s": rate, "burst": burst, "count": count}) == {"at_s": at_s}


def test_a_companion_has_the_labels_of_its_node_alone() -> None:
    node = {"name": "n", "uid": "", "labels": {"b": "2", "a": "1"}}
    for kind in ("CNR", "CNC"):
        answer = ask("node_companion_object", {"object": kind, "node": node, "existing": {"labels": {"old": "x"}}})
        assert answer["labels"] == {"a": "1", "b": "2"}
        assert answer["ownerReferences"][0]["uid"] == ""


ENTRY = {"type": "aqc", "namespace": "ns", "name": "n", "hash": "h"}


@pytest.mark.parametrize("field", ["type", "namespace", "name", "hash", None])
def test_a_config_is_up_to_date_when_every_field_agrees(field: str | None) -> None:
    entries = [ENTRY | {"type": "other"}, ENTRY | ({field: "x"} if field else {})]
    assert ask("config_up_to_date", {"cnc_entries": entries, "target": ENTRY}) == {"up_to_date": field is None}
    assert ask("config_up_to_date", {"cnc_entries": [], "target": ENTRY}) == {"up_to_date": False}


CREATED = "2006-01-02T15:04:05Z"


@pytest.mark.parametrize(
    ("last_duration", "now", "expired"),
    [
        ("5h", "2006-01-02T20:04:05Z", False),
        ("5h", "2006-01-02T20:04:05.000000001Z", True),
        ("1m30s", "2006-01-02T15:05:36Z", True),
        ("1.5h", "2006-01-02T16:34:05Z", False),
        ("1h", "2006-01-02T18:04:05+02:00", False),
        ("1h", "2006-01-02T18:04:06+02:00", True),
        ("0", "2006-01-02T15:04:05Z", False),
        ("-1s", "2006-01-02T15:04:05Z", True),
        (None, "2999-01-01T00:00:00Z", False),
    ],
)
def test_a_temporary_config_expires(last_duration: str | None, now: str, expired: bool) -> None:
    answer = ask("config_expired", {"created": CREATED, "last_duration": last_duration, "now": now})
    assert answer["expired"] is expired


@pytest.mark.parametrize("field", ["created", "last_duration", "now"])
def test_what_is_no_time_expires_nothing(field: str) -> None:
    inputs = {"created": CREATED, "last_duration": "1h", "now": CREATED} | {field: "yesterday"}
    with pytest.raises(Refused, match="yesterday"):
        ask("config_expired", inputs)


@pytest.mark.parametrize(
    ("canary", "matched", "nodes"),
    [
        (None, 7, 7),
        (0, 7, 0),
        (3, 7, 3),
        (-1, 7, 0),
        (9, 7, 7),
        ("3", 7, 3),
        ("50%", 7, 3),
        ("0%", 7, 0),
        ("100%", 7, 7),
        ("150%", 7, 7),
        ("-10%", 7, 0),
        ("99%", 1, 0),
        ("50%", 0, 0),
    ],
)
def test_canary_of_matched_nodes(canary: int | str | None, matched: int, nodes: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"canary": canary}}
    assert ask("canary_cutoff", {"update_strategy": strategy, "matched_nodes": matched})["canary_nodes"] == nodes
    paused = {"update_strategy": strategy, "matched_nodes": matched, "paused": True}
    assert ask("canary_cutoff", paused)["canary_nodes"] == 0


@pytest.mark.parametrize("strategy", [None, {}, {"type": "RollingUpdate"}, {"rollingUpdate": {}}])
def test_without_a_canary_all_nodes_are_meant(strategy: dict[str, Any] | None) -> None:
    assert ask("canary_cutoff", {"update_strategy": strategy, "matched_nodes": 4})["canary_nodes"] == 4


@pytest.mark.parametrize("canary", ["", "%", "ten", "1.5%", " 5%", "5 %", "0x5"])
def test_a_canary_that_is_no_number_is_refused(canary: str) -> None:
    with pytest.raises(Refused) as refusal:
        ask("canary_cutoff", {"update_strategy": {"rollingUpdate": {"canary": canary}}, "matched_nodes": 4})
    assert refusal.value.reason == "CalculateCanaryCutoffFailed"


def kcc(name: str = "default/k", target_type: str = "t", *priorities: int) -> dict[str, Any]:
    return {"name": name, "target_type": target_type, "allowed_keys": [{"priority": p, "keys": []} for p in priorities]}


@pytest.mark.parametrize(
    ("own", "others", "known", "reason"),
    [
        pytest.param(kcc(), [], None, "Normal", id="alone"),
        pytest.param(kcc(), [kcc()], None, "Normal", id="itself among the others"),
        pytest.param(kcc(), [kcc("default/l", "u")], ["t"], "Normal", id="another kind"),
        pytest.param(kcc(), [kcc("default/l")], None, "TargetTypeOverlap", id="two for one kind"),
        pytest.param(kcc(), [], [], "TargetTypeNotExist", id="no kind exists"),
        pytest.param(kcc(), [kcc("default/l")], ["u"], "TargetTypeNotExist", id="first of all the kind must exist"),
        pytest.param(
            kcc("d/k", "t", 0, 1, 1, 0, 2), [], None, "PrioritySelectorKeyInvalid", id="priorities given twice"
        ),
    ],
)
def test_kcc_valid(
    own: dict[str, Any],
    others: list[dict[str, Any]],
    known: list[str] | None,
    reason: str,
) -> None:
    answer = ask("kcc_valid", {"kcc": own, "others": others, "known_types": known})
    assert (answer["reason"], answer["valid"], answer["message"] == "") == (reason, *(reason == "Normal",) * 2)
    if reason == "PrioritySelectorKeyInvalid":
        assert answer["message"] == "duplicated priority: [0 1]"


@pytest.mark.parametrize(
    ("defaults", "overlay", "effective"),
    [
        ({}, {}, {}),
        ({"a": {"x": 1, "y": None}}, {"a": None}, {"a": {"x": 1, "y": None}}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "y": 0}}, {"a": {"x": 1, "y": 0}}),
        ({"a": {"x": {"cpu": 5, "memory": 5}}}, {"a": {"x": {"cpu": 10}}}, {"a": {"x": {"cpu": 10}}}),
        ({"a": {"x": [1]}}, {"a": {"x": []}, "b": {"z": False}}, {"a": {"x": []}, "b": {"z": False}}),
    ],
    ids=["nothing", "a null section", "a null field", "maps are not merged", "empty values and new sections"],
)
def test_effective_config(
    defaults: dict[str, Any],
    overlay: dict[str, Any],
    effective: dict[str, Any],
) -> None:
    assert ask("effective_config", {"defaults": defaults, "overlay": overlay}) == {"effective": effective}


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("cluster_state", {"ready_nodes": -1, "not_ready_nodes": 0}),
        ("agent_conditions", {"agents": {"a": "Lost"}}),
        ("paced_actions", {"actions_per_s": -1, "burst": 1, "count": 1}),
        ("node_companion_object", {"object": "Pod", "node": {"name": "n", "uid": "u"}}),
        ("selectors_overlap", {"selector": "a in b", "other": "", "keys": []}),
        ("canary_cutoff", {"matched_nodes": 1, "update_strategy": {"rollingUpdate": {"canary": 1.5}}}),
        ("config_hash", {"spec_config": []}),
        ("kcc_match", {"node": {"name": "n"}, "targets": [{"name": "t", "extra": 1}]}),
    ],
)
def test_malformed_questions_are_refused(kind: str, inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ask(kind, inputs)
