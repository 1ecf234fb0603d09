"""What the chart says of the scheduler extender once it is switched on: nobody's pods wait for it, and names agree."""

import re
from pathlib import Path
from typing import Any, get_args

import yaml

from services.central import extender
from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.cluster.judge import MOST_CHARACTERS
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.scheduling.answers import Verb
from services.central.settings import ExtenderSettings

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
SETTINGS = ExtenderSettings()
Document = dict[str, Any]


def plain(text: str) -> str:
    """A template as far as it is said without a release."""
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("{{"))
    text = re.sub(r"labels: \{\{.*\}\}(?=\n +app)", "labels:", text)
    text = re.sub(r"labels: \{\{.*\}\}", "labels: {}", text)
    text = text.replace("{{ .Release.Namespace }}", SETTINGS.namespace)
    return re.sub(r"\{\{.*?\}\}", "1", text)


def of_kind(name: str, kind: str) -> list[Document]:
    text = (CHART / "templates/scheduling" / name).read_text()
    return [one for one in yaml.safe_load_all(plain(text)) if one and one["kind"] == kind]


def scheduler_config() -> Document:
    text = (CHART / "templates/scheduler/scheduler.yaml").read_text()
    block = text[text.index("    extenders:") : text.index("    profiles:")]
    found: Document = yaml.safe_load(plain(block))["extenders"][0]
    return found


def test_it_is_off_until_somebody_switches_it_on_and_its_rights_with_it() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["scheduling"]
    assert values["enabled"] is False
    for name in ("deployment.yaml", "rights.yaml"):
        text = (CHART / "templates/scheduling" / name).read_text()
        assert text.startswith("{{- if .Values.scheduling.enabled }}")


def test_a_scheduler_goes_on_without_it_and_sends_names_alone() -> None:
    config = scheduler_config()
    assert (config["ignorable"], config["nodeCacheCapable"], config["httpTimeout"]) == (True, True, "1s")
    assert "managedResources" not in config  # load concerns every pod
    assert "bindVerb" not in config
    assert config["urlPrefix"] == f"https://{SETTINGS.names[0]}/v1"
    assert config["enableHTTPS"]
    verbs = {config[key] for key in ("filterVerb", "prioritizeVerb", "preemptVerb")}
    assert verbs == set(get_args(Verb))


def test_a_scheduler_asks_the_one_replica_that_knows_what_it_has_just_been_told() -> None:
    (service,) = of_kind("deployment.yaml", "Service")
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    assert service["metadata"]["name"] == SETTINGS.service
    (deployment,) = of_kind("deployment.yaml", "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", extender.__name__]
    assert {one["name"]: one["containerPort"] for one in container["ports"]}["extender"] == SETTINGS.port
    policies = (CHART / "templates/network.yaml").read_text()
    assert "app.kubernetes.io/component: extender}" in policies
    assert re.search(r"values: \[central, events, [^]]*extender", policies)


def test_it_may_write_a_nodes_annotation_its_certificate_and_its_lease_alone() -> None:
    assert REFUSES.startswith("scheduling.sublet.io/")
    (everywhere,) = of_kind("rights.yaml", "ClusterRole")
    writes = {
        (resource, verb)
        for rule in everywhere["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert writes == {("nodes", "patch"), ("pods", "patch")}, "the second where the gate is on alone"
    (own,) = of_kind("rights.yaml", "Role")
    named = {name for rule in own["rules"] for name in rule.get("resourceNames", ())}
    assert named == {SETTINGS.secret, SETTINGS.service}
    lease = (CHART / "templates/scheduling/deployment.yaml").read_text()
    assert f"kind: Lease\nmetadata:\n  name: {SETTINGS.service}\n" in lease


def test_the_gate_is_off_and_its_rights_with_it() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["scheduling"]
    assert values["gate"] == SETTINGS.gate == "none"
    rights = (CHART / "templates/scheduling/rights.yaml").read_text()
    switched = (
        '{{- if ne .Values.scheduling.gate "none" }}\n  - apiGroups: [""]\n    resources: [pods]\n    verbs: [patch]'
    )
    assert switched in rights
    helpers = (CHART / "templates/_names.tpl").read_text()
    assert 'if and .Values.scheduling.enabled (eq .Values.scheduling.gate "hold")' in helpers


def test_of_a_pod_the_extender_takes_the_one_gate_away_and_changes_nothing_else() -> None:
    text = (CHART / "templates/scheduling/gate.yaml").read_text()
    assert f"filter(name, name != '{GATE}')" in text
    changeable = ("containers", "initContainers", "nodeSelector", "affinity", "tolerations", "activeDeadlineSeconds",
                  "terminationGracePeriodSeconds")  # fmt: skip
    for field in changeable:
        assert text.count(f".{field} ==") + text.count(f".?{field} ==") == 1, field
    assert "serviceaccount:{{ .Release.Namespace }}:sublet-extender'" in text


def test_of_a_node_the_extender_writes_the_one_annotation_as_long_as_it_ever_is() -> None:
    text = (CHART / "templates/scheduling/nodes.yaml").read_text()
    assert text.startswith("{{- if and .Values.scheduling.enabled .Values.admission.enabled }}")
    assert f"expression: \"'{REFUSES}'\"" in text
    assert f"<= {MOST_CHARACTERS}\n" in text
    assert "serviceaccount:{{ .Release.Namespace }}:sublet-extender'" in text


def test_the_scheduler_trusts_the_authority_that_the_extender_makes() -> None:
    text = (CHART / "templates/scheduler/scheduler.yaml").read_text()
    assert f"secretName: {SETTINGS.secret}\n" in text
    keys = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    assert scheduler_config()["tlsConfig"] == {key: f"/etc/sublet-extender/{name}" for key, name in keys.items()}
    for name in keys.values():
        assert f"{{key: {name}, path: {name}}}" in text


def test_one_further_profile_spreads_and_one_packs() -> None:
    text = (CHART / "templates/scheduler/scheduler.yaml").read_text()
    assert '(list "sublet-spread" "sublet-pack")' in text
    assert '$packing := dict "sublet-pack" true' in text
    assert SETTINGS.strategies == {"sublet-pack": "most_allocated"}
