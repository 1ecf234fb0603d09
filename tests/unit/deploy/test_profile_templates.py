"""What the chart says of colocation profiles once they are switched on: nobody's pods wait, and names are central's."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central import webhook
from services.central.core.profiles.profile_documents import PROFILES
from services.central.settings import WebhookSettings

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
SETTINGS = WebhookSettings()
Document = dict[str, Any]


def documents(name: str) -> list[Document]:
    """The documents of a template, as far as they are said without a release."""
    text = (CHART / "templates/profiles" / name).read_text()
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("{{"))
    plain = re.sub(r"labels: \{\{.*\}\}(?=\n +app)", "labels:", plain)
    plain = re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain)
    plain = re.sub(r"^ +\{\{.*\}\}$", "", plain, flags=re.MULTILINE)
    plain = plain.replace("{{ .Release.Namespace }}", SETTINGS.namespace).replace("{{ toJson $namespaces }}", "[own]")
    return [one for one in yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "1", plain)) if one]


def of_kind(name: str, kind: str) -> Document:
    (found,) = [one for one in documents(name) if one["kind"] == kind]
    return found


def deployment() -> Document:
    return of_kind("deployment.yaml", "Deployment")


def test_the_api_server_is_sent_to_a_webhook_that_is_ready_and_needs_neither_central_nor_bus() -> None:
    """Were it a part of central, whose readiness asks for the bus, nobody would answer while the bus is away."""
    service, spec = of_kind("webhook.yaml", "Service")["spec"], deployment()["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "webhook"
    assert service["selector"] == labels == spec["selector"]["matchLabels"]
    assert "publishNotReadyAddresses" not in service
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", webhook.__name__]
    assert not [one["name"] for one in container["env"] if "NATS" in one["name"]]
    template = (CHART / "templates/profiles/deployment.yaml").read_text()
    assert 'include "sublet.probes"' in template
    policies = (CHART / "templates/network.yaml").read_text()
    assert "app.kubernetes.io/component: webhook}" in policies


def test_profiles_are_off_until_somebody_switches_them_on() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["profiles"]
    assert (values["enabled"], values["refuse"]) == (False, False)
    for name in ("deployment.yaml", "rights.yaml", "webhook.yaml"):
        text = (CHART / "templates/profiles" / name).read_text()
        assert text.startswith('{{- if include "sublet.webhook" . }}')


def test_pods_are_asked_about_only_where_profiles_are_on() -> None:
    text = (CHART / "templates/profiles/webhook.yaml").read_text()
    assert '{{- if or .Values.profiles.enabled (include "sublet.gated" .) }}\n  - name: profiles.pods.sublet.io' in text
    assert "{{- $refuse := and .Values.profiles.enabled .Values.profiles.refuse }}" in text
    assert "{{- if $refuse }}\n  - name: classes.pods.sublet.io" in text


def test_no_pod_waits_for_an_answer_that_does_not_come() -> None:
    hooks = [
        hook
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for hook in of_kind("webhook.yaml", kind)["webhooks"]
        if hook["name"].endswith(".pods.sublet.io")
    ]
    assert [hook["clientConfig"]["service"]["path"] for hook in hooks] == ["/mutate", "/validate"]
    for hook in hooks:
        assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "None")
        (rule,) = hook["namespaceSelector"]["matchExpressions"]
        assert (rule["key"], rule["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        (asked,) = hook["rules"]
        assert (asked["resources"], asked["scope"]) == (["pods"], "Namespaced")
    assert hooks[0]["rules"][0]["operations"] == ["CREATE"]
    assert hooks[0]["reinvocationPolicy"] == "Never"


def test_the_names_are_those_that_central_has_by_default() -> None:
    service = of_kind("webhook.yaml", "Service")
    assert service["metadata"]["name"] == SETTINGS.service
    (container,) = deployment()["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhook", "containerPort": SETTINGS.port} in container["ports"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        found = of_kind("webhook.yaml", kind)
        assert found["metadata"]["name"] == SETTINGS.configuration
        for hook in found["webhooks"]:
            assert hook["clientConfig"]["service"] | {"path": "", "port": 0} == {
                "name": SETTINGS.service, "namespace": SETTINGS.namespace, "path": "", "port": 0
            }  # fmt: skip


def test_the_webhook_may_write_its_own_secret_and_statuses_and_nothing_more() -> None:
    cluster, own = of_kind("rights.yaml", "ClusterRole"), of_kind("rights.yaml", "Role")
    writes = {
        resource: (sorted(set(rule["verbs"]) - {"get", "list", "watch"}), rule.get("resourceNames"))
        for rule in cluster["rules"]
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
    }
    configurations = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert writes == {
        f"{PROFILES.plural}/status": (["patch"], None),
        **dict.fromkeys(configurations, (["patch"], [SETTINGS.configuration])),
    }
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in own["rules"]] == [
        (["create"], None),
        (["get", "patch"], [SETTINGS.secret]),
        (["create"], None),
        (["get", "patch", "update"], [SETTINGS.service]),
    ]
    lease = of_kind("deployment.yaml", "Lease")["metadata"]
    assert lease["name"] == SETTINGS.service
