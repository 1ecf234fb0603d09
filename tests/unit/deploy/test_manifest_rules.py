"""What every manifest of deploy/k8s keeps to, without a cluster: rights, pod security, images, and their source."""

import json
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml
from bus_rights_rig import certificates
from jsonschema import Draft202012Validator

from services.central.core.logins.bus_login import ACCOUNT, AUDIENCE, rights_of
from services.central.issuer import main as write_issuer
from services.central.settings import CentralSettings, ExtenderSettings, MetricsApiSettings, WebhookSettings
from services.evictor.settings import read
from shared.adapters.nats.embedded.server import find_binary
from shared.build import VERSION
from shared.core.bus.nats_url import NatsAddress, read_nats_url
from shared.core.text.yaml_text import read_yaml
from shared.settings import common_settings, read_environment, section
from sublet.cluster.switched_off import SWITCHES

K8S = Path(__file__).parents[3] / "deploy/k8s"

_spec = spec_from_file_location("render", K8S / "render.py")
assert _spec is not None
assert _spec.loader is not None
render = module_from_spec(_spec)
_spec.loader.exec_module(render)

Document = dict[str, Any]
RENDERED = [
    "base/sublet.yaml",
    "uninstall/uninstall.yaml",
    *(f"overlays/{name}/sublet.yaml" for name in render.OVERLAYS),
]
IMAGES = {f"sublet:{VERSION}", "registry.k8s.io/kube-scheduler:v1.35.4"}


def documents() -> list[Document]:
    return [d for path in RENDERED for d in yaml.safe_load_all((K8S / path).read_text())]


def of_kind(*kinds: str) -> list[Document]:
    return [d for d in documents() if d["kind"] in kinds]


def pods() -> list[tuple[str, Document]]:
    workloads = of_kind("DaemonSet", "Deployment", "StatefulSet", "Job")
    return [(d["metadata"]["name"], d["spec"]["template"]["spec"]) for d in workloads]


def containers() -> list[tuple[str, Document]]:
    return [
        (f"{name}/{one['name']}", one)
        for name, spec in pods()
        for one in [*spec["containers"], *spec.get("initContainers", [])]
    ]


def test_every_file_that_a_service_reads_is_a_mapping() -> None:
    files = [
        (d["metadata"]["name"], name, read_yaml(text, what=name, max_bytes=1 << 20).value)
        for d in of_kind("ConfigMap")
        for name, text in (d.get("data") or {}).items()
        if name.endswith(".yaml")
    ]
    assert {name for _, name, _ in files} >= {"settings.yaml", "config.yaml"}
    assert not [(owner, name) for owner, name, value in files if not isinstance(value, dict)]


def test_what_is_committed_was_made_from_the_chart_as_it_is() -> None:
    """Else: HELM=helm python deploy/k8s/render.py"""
    assert render.SUM.read_text() == render.checksums()


def test_a_changed_chart_has_another_sum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for part in ("chart", "base", "uninstall", "overlays"):
        (tmp_path / part).mkdir()
    (tmp_path / "base/sublet.yaml").write_text("")
    (tmp_path / "uninstall/uninstall.yaml").write_text("")
    monkeypatch.setattr(render, "HERE", tmp_path)
    (tmp_path / "chart/values.yaml").write_text("a: 1\n")
    before = render.checksums()
    (tmp_path / "chart/values.yaml").write_text("a: 2\n")
    assert render.checksums() != before


RIGHTS = {
    "sublet-node": {
        "pods": "get list watch",
        "pods/eviction": "create",
        "nodes": "get patch",
        "nodes/status": "patch",
        "customnoderesources": "create get patch",
        "customnoderesources/status": "create get patch",
        "nodemetrics": "create get",
        "nodemetrics/status": "patch",
    },
    "sublet-node-leaving": {"daemonsets": "get"},
    "sublet-central": {
        "pods": "get list watch",
        "pods/eviction": "create",
        "nodes": "get list patch watch",
        "nodes/status": "patch",
        "customnoderesources": "create delete get list patch watch",
        "customnoderesources/status": "create delete get list patch watch",
        "customnodeconfigs": "create delete get list patch watch",
        "customnodeconfigs/status": "create delete get list patch watch",
        "katalystcustomconfigs": "delete get list patch watch",
        "evictionconfigurations": "delete get list patch watch",
        "adminqosconfigurations": "delete get list patch watch",
        "katalystcustomconfigs/status": "patch",
        "evictionconfigurations/status": "patch",
        "adminqosconfigurations/status": "patch",
        "leases": "create get patch update",
        "tokenreviews": "create",
        "configmaps": "get list watch",
    },
    "sublet-pauses": {"configmaps": "get patch update"},
    "sublet-central-node-leases": {"leases": "get list watch"},
    "sublet-events": {"events": "create"},
    "sublet-scheduler": {"leases": "create get update"},
    "sublet-uninstall": {
        "pods": "get list patch",
        "daemonsets": "get",
        "deployments": "list",
        "configmaps": "patch",
        "secrets": "delete",
        "nodes": "get list patch",
        "nodes/status": "patch",
        "customnoderesources": "delete list",
        "nodemetrics": "delete list",
        "nodeslos": "delete list",
        "customnodeconfigs": "delete list",
        "katalystcustomconfigs": "list patch",
        "evictionconfigurations": "list patch",
        "adminqosconfigurations": "list patch",
        "tidenodepools": "list patch",
        "horizontalpodautoscalers": "get list patch",
        "verticalpodautoscalers": "get list patch",
        "serviceprofiledescriptors": "delete list",
        "usagecheckpoints": "delete list",
    },
}
"""By role what it may do with what: a right more is a decision, and shows here."""


def test_nobody_has_a_right_that_is_not_listed_here() -> None:
    found: dict[str, dict[str, set[str]]] = {}
    for role in of_kind("ClusterRole", "Role"):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                found.setdefault(role["metadata"]["name"], {}).setdefault(resource, set()).update(rule["verbs"])
    assert {role: {what: " ".join(sorted(v)) for what, v in may.items()} for role, may in found.items()} == RIGHTS


def test_no_right_is_for_everything_or_for_kubelets_door() -> None:
    for role in of_kind("ClusterRole", "Role"):
        words = [word for rule in role["rules"] for key in ("apiGroups", "resources", "verbs") for word in rule[key]]
        assert "*" not in words
        assert not {"nodes/proxy", "pods/exec", "impersonate", "escalate", "bind"} & set(words)


def test_no_secret_can_be_read_and_an_uninstall_deletes_certificates_of_ours_alone() -> None:
    rules = [
        rule for role in of_kind("ClusterRole", "Role") for rule in role["rules"] if "secrets" in rule["resources"]
    ]
    made = [one().secret for one in (WebhookSettings, ExtenderSettings, MetricsApiSettings)]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in rules] == [(["delete"], made)]


def test_leases_and_switches_are_written_by_name_alone() -> None:
    for role in of_kind("Role"):
        name = role["metadata"]["name"]
        for rule in role["rules"]:
            if {"update", "patch"} & set(rule["verbs"]):
                assert rule["resourceNames"] == [SWITCHES if name == "sublet-uninstall" else name]


ROOTS = ("sublet-node/agent", "sublet-node/leave", "sublet-give-back/give-back")
"""Who writes cgroups."""
AHEAD = {"sublet-node/agent": {"add": ["SYS_NICE", "IPC_LOCK"]}}
"""Who goes before other work of its node, and keeps its memory."""


@pytest.mark.parametrize(("name", "container"), containers(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_container_is_held_to_what_it_needs(name: str, container: Document) -> None:
    held = container["securityContext"]
    assert held["allowPrivilegeEscalation"] is False
    assert held["readOnlyRootFilesystem"] is True
    assert held["capabilities"] == {"drop": ["ALL"], **AHEAD.get(name, {})}
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]
    assert (held.get("runAsUser") == 0) == (name in ROOTS)


def test_the_agent_may_count_what_cpus_do_only_where_the_settings_count_it() -> None:
    names = (render.HERE / "chart/templates/_names.tpl").read_text()
    (line,) = (line for line in names.splitlines() if "PERFMON" in line)
    assert line.startswith('{{- if dig "metrics" "perf" "enabled" false .Values.settings }}')


def test_the_agent_shares_the_nodes_processes_no_pod_more_and_all_are_filtered() -> None:
    for name, spec in pods():
        shared = {"hostPID"} if name == "sublet-node" else set()  # the tasks of a cgroup have no number elsewhere
        assert spec.keys() & {"hostNetwork", "hostPID", "hostIPC"} == shared, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name  # its variables would read as settings
        on_host = [volume["name"] for volume in spec["volumes"] if "hostPath" in volume]
        assert on_host == (["state", "proc", "sys", "cgroup"] if name in ("sublet-node", "sublet-give-back") else []), (
            name
        )


@pytest.mark.parametrize("name", ROOTS)
def test_who_is_root_may_write_nothing_of_the_node_but_cgroups_and_its_own_state(name: str) -> None:
    ((_, root), *_) = [one for one in containers() if one[0] == name]
    writable = {mount["mountPath"] for mount in root["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/host/sys/fs/cgroup", "/var/lib/sublet", "/tmp"}


def test_only_who_asks_the_api_server_has_a_token() -> None:
    holders = {name for name, one in containers() if "token" in {m["name"] for m in one.get("volumeMounts", ())}}
    assert holders == {
        "sublet-node/agent",
        "sublet-node/leave",
        "sublet-central/central",
        "sublet-events/bridge",
        "sublet-scheduler/scheduler",
        "sublet-uninstall/uninstall",
    }


def test_every_image_is_one_of_those_that_values_name() -> None:
    assert {one["image"] for _, one in containers()} == IMAGES
    values = yaml.safe_load((K8S / "chart/values.yaml").read_text())
    version = yaml.safe_load((K8S / "chart/Chart.yaml").read_text())["appVersion"]
    assert {f"{values['image']['name']}:{version}", values["scheduler"]["image"]} == IMAGES


def test_long_running_containers_are_probed() -> None:
    ending = ("sublet-uninstall/uninstall", "sublet-bus/issuer", "sublet-give-back/give-back", "sublet-give-back/done")
    for name, one in containers():
        if name not in (*ending, "sublet-events/bridge", "sublet-node/leave"):
            assert "livenessProbe" in one, name


def test_no_password_is_in_any_manifest_but_the_demos() -> None:
    assert not of_kind("Secret")
    for overlay in ("default", "ha"):
        assert "secretGenerator" not in yaml.safe_load((K8S / f"overlays/{overlay}/kustomization.yaml").read_text())


@pytest.mark.parametrize(
    ("overlay", "replicas"), [("demo", (1, 1)), ("default", (2, 1)), ("ha", (2, 3))], ids=render.OVERLAYS
)
def test_an_overlay_has_as_many_of_each_as_it_says(overlay: str, replicas: tuple[int, int]) -> None:
    found = {
        d["metadata"]["name"]: d["spec"]["replicas"]
        for path in ("base/sublet.yaml", f"overlays/{overlay}/sublet.yaml")
        for d in yaml.safe_load_all((K8S / path).read_text())
        if d["kind"] in ("Deployment", "StatefulSet")
    }
    assert (found["sublet-central"], found["sublet-bus"]) == replicas


def test_every_policy_refuses_with_words_and_is_bound() -> None:
    policies = of_kind("ValidatingAdmissionPolicy")
    assert policies
    for policy in policies:
        assert policy["spec"]["failurePolicy"] == "Fail"
        for rule in policy["spec"]["validations"]:
            assert rule.get("message") or rule.get("messageExpression"), policy["metadata"]["name"]
    bound = {d["spec"]["policyName"] for d in of_kind("ValidatingAdmissionPolicyBinding")}
    assert bound == {policy["metadata"]["name"] for policy in policies}


def test_the_settings_of_every_node_are_settings_of_the_services_with_the_load_plugin_on() -> None:
    (found,) = [d for d in of_kind("ConfigMap") if d["metadata"]["name"] == "sublet-node"]
    settings = yaml.safe_load(found["data"]["settings.yaml"])
    common_settings(settings)
    assert "cpu-pressure-eviction-plugin" in read(settings["evictor"])[1]


def test_the_leafs_token_is_for_the_bus_alone_and_of_no_use_at_the_api_server() -> None:
    (daemon,) = (one for one in of_kind("DaemonSet") if one["metadata"]["name"] == "sublet-node")
    spec = daemon["spec"]["template"]["spec"]
    (volume,) = [one for one in spec["volumes"] if one["name"] == "bus-token"]
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == AUDIENCE
    (bus,) = [one for one in spec["initContainers"] if one["name"] == "bus"]
    assert {mount["name"] for mount in bus["volumeMounts"]} == {"bus", "bus-login", "bus-token", "bus-authority"}
    (agent,) = spec["containers"]
    assert not {"bus-login", "bus-token"} & {mount["name"] for mount in agent["volumeMounts"]}


@pytest.mark.parametrize("overlay", render.OVERLAYS)
def test_central_is_told_how_many_keep_a_stream_and_how_to_answer_for_leaves(overlay: str) -> None:
    (central,) = [
        d
        for path in ("base/sublet.yaml", f"overlays/{overlay}/sublet.yaml")
        for d in yaml.safe_load_all((K8S / path).read_text())
        if d["kind"] == "Deployment" and d["metadata"]["name"] == "sublet-central"
    ]
    (container,) = central["spec"]["template"]["spec"]["containers"]
    env = {
        one["name"]: one["value"].replace("$(LOGINS_PASSWORD)", "word") for one in container["env"] if "value" in one
    }
    env["SUBLET_CENTRAL__KUBERNETES__LOGINS__ISSUER"] = "secret"
    settings = section(CentralSettings, read_environment(env), "central")
    assert settings.stream_replicas == (3 if overlay == "ha" else 1)
    assert settings.kubernetes.logins is not None
    assert settings.kubernetes.logins.issuers == ("secret",)
    where = read_nats_url(settings.kubernetes.logins.url)
    hub = ("tls://sublet-bus.sublet-system.svc:4222",)
    assert where == NatsAddress(hub, "logins", "word", ca_file="/etc/nats-tls/ca.crt")  # none before it
    assert settings.kubernetes.logins.agents == "system:serviceaccount:sublet-system:sublet-node"


def test_the_schema_of_the_values_is_that_of_the_models() -> None:
    """Else: HELM=helm python deploy/k8s/render.py"""
    schema = render.values_schema
    assert schema.SCHEMA.read_text() == schema.text()


def with_value(path: str, value: object) -> Document:
    """The chart's own values with one of them replaced."""
    values: Document = yaml.safe_load((K8S / "chart/values.yaml").read_text())
    *folders, leaf = path.split(".")
    here = values
    for folder in folders:
        here = here.setdefault(folder, {})
    here[leaf] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("config.advisor.polcy", "x", "'polcy' was unexpected"),
        ("config.evictor.plugins.cpu_load.mode", "bad", "'bad' is not one of"),
        ("config.mode", "dry-run", "'dry-run' is not one of"),
        ("mode", "enforced", "'enforced' is not one of"),
        ("settings.evictor.cooling_s", -1, "-1 is less than the minimum of 0"),
        ("settings.qrm.starts.each_cpu_s", "soon", "'soon' is not of type 'number'"),
        ("settings.evicter", {}, "'evicter' was unexpected"),
        ("settings.central.rules.late_s", 0, "0 is less than or equal to the minimum of 0"),
        ("node.resources.requests.cpu", -1, "-1 is not valid"),
        ("bus.storage", "2Gx", "'2Gx' is not valid"),
    ],
)
def test_a_bad_setting_is_refused_before_anything_is_installed(path: str, value: object, words: str) -> None:
    validator = Draft202012Validator(json.loads(render.values_schema.SCHEMA.read_text()))
    (error,) = validator.iter_errors(with_value(path, value))
    assert words in error.message
    assert not list(validator.iter_errors(with_value("settings.evictor.plugins.of_a_wheel", {"any": 1})))


def test_every_right_of_a_node_has_its_way_through_the_hubs_accounts() -> None:
    config = (K8S / "chart/templates/bus/config.yaml").read_text()
    assert f"      {ACCOUNT} {{\n" in config
    for subject in rights_of("n1").publish:
        asked = subject.removeprefix("SUBLET.API.").replace("n1", "*")
        way = asked.partition("$KV.sublet-config.")[0] if "$KV" in asked else asked
        assert way in config, subject


@pytest.mark.parametrize("overlay", render.OVERLAYS)
def test_the_bus_takes_its_configuration(overlay: str, tmp_path: Path) -> None:
    (found,) = [
        d
        for path in ("base/sublet.yaml", f"overlays/{overlay}/sublet.yaml")
        for d in yaml.safe_load_all((K8S / path).read_text())
        if d["kind"] == "ConfigMap" and d["metadata"]["name"] == "sublet-bus"
    ]
    names = (
        "CENTRAL_PASSWORD",
        "LOGINS_PASSWORD",
        "BRIDGE_PASSWORD",
        "ROUTES_PASSWORD",
        "ISSUER",
        "POD_NAME",
        "LEAF_NAME",
    )
    env = dict.fromkeys(names, "p") | {"ROUTES": ",".join(f"bus-{n}:6222" for n in range(3))}
    for folder in ("nats", "nats-issuer", "nats-login"):
        (tmp_path / folder).mkdir()
    write_issuer(tmp_path / "nats-issuer", env)
    (tmp_path / "nats-login/remote.conf").write_text('url: "nats-leaf://leaf:p@bus:7422"\n')
    for file in ("hub.conf", "leaf.conf"):
        (tmp_path / "nats" / file).write_text(
            found["data"][file].replace("/var/lib/nats", str(tmp_path)).replace("/etc/nats-tls", str(certificates()))
        )
        words = [str(find_binary()), "--config", str(tmp_path / "nats" / file), "-t"]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
