"""Every text from outside is read at one door of its kind: who else parses something is found here.

A module that parses text stands in one of the tables below, with what it reads and from whom. A new one fails until it
is written down, or, better, uses the door that there is.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PARSERS = {"loads", "from_json", "model_validate_json", "safe_load", "safe_load_all", "read_json",
           "read_json_object", "unpackb", "SafeLoader", "read_yaml", "read_yaml_documents",
           "read_yaml_file"}  # fmt: skip
FACTS = {"EvictionEvent", "EvictionIntent", "Decision"}
BOUNDED = {"read_json", "read_json_object", "read_yaml", "read_yaml_documents"}

DOORS = {
    "shared/core/text/json_text.py": "JSON of anybody: bounded, one error",
    "shared/core/text/yaml_text.py": "YAML of anybody: bounded, no key twice, one error",
    "shared/core/text/annotation_values.py": "annotations of pods, which have a bound",
    "shared/contracts/envelope.py": "state messages: bounded, typed",
    "services/metrics/core/counters.py": "lines that perf prints: bounded, no figure if one cannot be read",
    "shared/contracts/bus/stored.py": "intents and events of the streams, compared with their subjects",
    "shared/contracts/cluster/pauses.py": "pauses of operators and central's entry: what is unreadable pauses",
    "shared/core/pods/cpu_binding.py": "annotations on a pod's CPUs: what is required and unreadable is a refusal",
    "services/reporter/core/node_capacity.py": "annotations of the Node, each not there if it cannot be read",
    "services/reporter/core/node_strategy.py": "what the Node says of its own colocation, as configured if it cannot",
    "services/reporter/core/mid/stored_past.py": "what the reporter knew before it was started anew, none if not so",
    "services/advisor/core/prediction/stored_margin.py": "what a policy had learned before a start, nothing if not so",
    "shared/adapters/kube/client.py": "answers and events of the API server",
    "sublet/ask.py": "answers of the services",
    "sublet/cluster/inside.py": "answers of Sublet's pods to a command in them: bounded, one error",
    "sublet/doctor/upgrade/release.py": "the release that Helm keeps: bounded packed and unpacked, one error",
    "services/central/core/admission/allowed.py": "AdmissionReviews of the API server",
    "services/central/core/custom_metrics/front_proxy.py": "a ConfigMap of the API server: nobody is let in if not so",
    "services/central/core/recommendation/usage/checkpoint.py": "what the last leader knew of usage, none if not so",
    "services/central/scheduling/answers.py": "calls of schedulers",
    "services/qrm/app.py": "questions on a pod, of this node's runtime",
    "shared/adapters/host/kubelet_checkpoints.py": "kubelet's state, not known if it cannot be read",
    "sublet/doctor/node/node_probe.py": "kubelet's state, for a person",
    "sublet/doctor/node/host_processes.py": "kubelet's configuration, for a person",
    "sublet/consumers/dead.py": "advisories of the NATS server",
    "shared/core/bus/nats_jwt.py": "questions of the NATS server on a login",
    "shared/app.py": "configuration entries, of central alone",
    "services/central/adapters/node_entries.py": "configuration entries, of central alone",
    "services/central/core/clock_bounds/schedule.py": "an autoscaler's schedule: whole or not at all",
    "services/central/core/clock_bounds/autoscaler.py": "an autoscaler's former bounds, not there if unreadable",
    "services/central/core/slo/config_map.py": "Koordinator's ConfigMap, of the cluster's operator",
    "services/central/core/tide/change.py": "annotations of Nodes: bounded, no change if they cannot be read",
    "sublet/migrate/takeover/own_mode.py": "our own ConfigMaps, which the cluster's operator may have edited",
    "sublet/migrate/takeover/preparations.py": "one key of the same, to be written back with an entry more",
}
OUR_OWN_FILES = {
    "services/qrm/adapters/checkpoint/envelope.py", "services/qrm/adapters/checkpoint/file.py",
    "services/qrm/adapters/checkpoint/former_values.py", "services/qrm/adapters/lease/file.py",
    "shared/adapters/ledger/sqlite.py", "shared/adapters/local/pods.py", "shared/adapters/nats/embedded/accounts.py",
    "shared/adapters/nats/embedded/reload.py", "shared/adapters/nats/embedded/server.py",
    "shared/adapters/local/pod_folder.py", "shared/adapters/files/taints.py", "sublet/bridge/position.py",
    "sublet/bus_login.py", "sublet/pods/offer.py", "shared/adapters/local/runtime.py", "shared/adapters/local/spawn.py",
    "shared/adapters/local/shim.py", "sublet/sim/run.py", "services/advisor/policies/model.py",
    "sublet/sim/progress.py",
}  # fmt: skip
"""In a state folder that is ours and nobody else may write, or shipped with the product."""
WHAT_A_PERSON_GIVES = {
    "services/central/core/config.py", "shared/settings.py", "shared/text_file.py",
    "sublet/replay/row_text.py", "sublet/replay/traces/reading.py", "sublet/pods/applying.py",
    "sublet/sim/scenario.py", "sublet/whatif.py", "sublet/laws/given_settings.py", "sublet/configuration/slo.py",
    "sublet/migrate/plan/objects.py", "sublet/replay/traces/formats/google.py",
    "sublet/replay/traces/formats/prometheus.py", "sublet/replay/decisions/reading.py",
    "sublet/doctor/upgrade/chart.py",
}  # fmt: skip
"""Files and words of whoever types the command, refused in words where they are wrong."""
DEMO = {"sublet/demo/chain.py", "sublet/views/events.py", "sublet/fleet/run.py"}
"""What the same process, or the same door, has just written."""


Nodes = tuple[ast.Call | ast.Constant, ...]
"""What the tests look at of a module: to walk through all of it takes longer than all they do."""


@cache
def modules() -> tuple[tuple[str, Nodes], ...]:
    paths = [path for folder in ("services", "shared", "sublet") for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple((path.relative_to(ROOT).as_posix(), nodes(path)) for path in paths)


def nodes(path: Path) -> Nodes:
    return tuple(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call | ast.Constant))


def calls(nodes: Nodes) -> Iterator[tuple[str, str, ast.Call]]:
    """Name and owner of everything that is called: `json.loads` is ("loads", "json")."""
    for node in nodes:
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id=owner), attr=name):
                    yield name, owner, node
                case ast.Attribute(attr=name):
                    yield name, "", node
                case ast.Name(id=name):
                    yield name, "", node


def test_who_parses_text_is_a_door_or_reads_what_is_ours() -> None:
    known = DOORS.keys() | OUR_OWN_FILES | WHAT_A_PERSON_GIVES | DEMO
    found = {
        path
        for path, nodes_of in modules()
        for name, owner, _ in calls(nodes_of)
        if name in PARSERS and owner not in ("tomllib", "pickle")
    }
    assert sorted(found - known) == []
    assert sorted(known - found - {"shared/contracts/bus/stored.py", "shared/contracts/envelope.py"}) == []


def test_nothing_is_unpickled_or_evaluated() -> None:
    bad = [
        (path, node.lineno)
        for path, nodes_of in modules()
        for name, owner, node in calls(nodes_of)
        if owner in ("pickle", "marshal", "shelve") or (name in ("eval", "exec") and not owner) or name == "unsafe_load"
    ]
    assert bad == []


def test_intents_and_events_are_read_at_their_door_alone() -> None:
    """A body without its subject says nothing of who speaks."""
    found = {
        path
        for path, nodes_of in modules()
        for name, owner, _ in calls(nodes_of)
        if name == "decode" and owner in FACTS
    }
    assert found <= {
        "shared/contracts/bus/stored.py",
        "shared/adapters/ledger/sqlite.py",
    }  # the ledger wrote them itself


def test_pods_of_the_api_server_are_read_at_their_door_alone() -> None:
    """`spec.containers` of a document is nobody's business but the readers of pods."""
    readers = {
        path
        for path, nodes_of in modules()
        if _names(nodes_of, "containerStatuses") or _names(nodes_of, "initContainers")
    }
    assert readers <= {"shared/core/pods/kube_pod.py", "shared/core/pods/manifest.py",
                       "shared/core/pods/extended_resources.py", "shared/core/pods/resources.py",
                       "services/central/core/profiles/colocated_resources.py",
                       "services/central/core/profiles/pod_claims.py",
                       "services/central/core/scheduling/cluster/pod_asks.py",
                       "services/central/core/recommendation/objects/workloads.py",
                       "services/central/core/tide/seen.py",
                       "services/central/whatif/pod_amounts.py",
                       # Leaves out what nothing is decided by, before anything of a pod is kept.
                       "sublet/replay/decisions/recording.py",
                       "sublet/doctor/cluster/cluster_probe.py"}  # fmt: skip


def test_answers_are_asked_for_in_one_place() -> None:
    found = {
        path
        for path, nodes_of in modules()
        for name, owner, _ in calls(nodes_of)
        if name == "request" and owner == "bus"
    }
    assert found <= {"sublet/ask.py", "sublet/pods/admission.py", "sublet/demo/chain.py"}


def test_yaml_has_one_door() -> None:
    """The parser itself takes the last of two equal keys, and reads any size."""
    found = {
        path for path, nodes_of in modules() for name, owner, _ in calls(nodes_of) if owner == "yaml" and "oad" in name
    }
    assert found == {"shared/core/text/yaml_text.py"}


def test_every_bounded_read_names_its_bound() -> None:
    for path, nodes_of in modules():
        for name, owner, node in calls(nodes_of):
            if name in BOUNDED and not owner and path in {*DOORS, *WHAT_A_PERSON_GIVES}:
                assert {word.arg for word in node.keywords} >= {"what", "max_bytes"}, (path, node.lineno)


def _names(nodes: Nodes, text: str) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == text for node in nodes)
