"""What the chart says of the metrics API once it is switched on: off by default, least rights, names of the process."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central import metrics_api
from services.central.adapters.metrics_api.api_services import NAMES
from services.central.core.custom_metrics.front_proxy import NAMESPACE as OF_THE_PROXY
from services.central.settings import MetricsApiSettings

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
FOLDER = CHART / "templates/metrics-api"
SETTINGS = MetricsApiSettings()
Document = dict[str, Any]


def documents(name: str) -> list[Document]:
    """The documents of a template, as far as they are said without a release."""
    text = (FOLDER / name).read_text()
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("{{"))
    plain = re.sub(r"labels: \{\{.*\}\}(?=\n +app)", "labels:", plain)
    plain = re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain)
    plain = re.sub(r"^ +\{\{.*\}\}$", "", plain, flags=re.MULTILINE)
    plain = re.sub(r"\{\{ \$?\.Release\.Namespace \}\}", SETTINGS.namespace, plain)
    return [one for one in yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "1", plain)) if one]


def of_kind(name: str, kind: str) -> Document:
    (found,) = [one for one in documents(name) if one["kind"] == kind]
    return found


def test_it_is_off_until_somebody_switches_it_on() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["metricsApi"]
    assert (values["enabled"], values["pages"]) == (False, False)
    for path in FOLDER.iterdir():
        assert path.read_text().startswith("{{- if .Values.metricsApi.enabled }}"), path


def test_names_and_ports_are_those_of_the_process() -> None:
    service, api = of_kind("api-services.yaml", "Service"), of_kind("api-services.yaml", "APIService")
    spec = of_kind("deployment.yaml", "Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", metrics_api.__name__]
    assert {"name": "metrics-api", "containerPort": SETTINGS.port} in container["ports"]
    assert service["spec"]["selector"] == spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"]
    assert service["metadata"]["name"] == SETTINGS.service
    assert api["spec"]["service"] == {"name": SETTINGS.service, "namespace": SETTINGS.namespace, "port": 443}
    assert of_kind("deployment.yaml", "Lease")["metadata"]["name"] == SETTINGS.service


def test_nobody_trusts_it_without_its_certificate() -> None:
    assert "insecureSkipTLSVerify" not in (FOLDER / "api-services.yaml").read_text()


def test_it_may_write_its_own_secret_and_whom_to_trust_and_nothing_more() -> None:
    pods, trusted = of_kind("rights.yaml", "ClusterRole")["rules"]
    assert (pods["resources"], pods["verbs"]) == (["pods", "nodes"], ["list", "watch"])
    assert (trusted["resources"], trusted["verbs"]) == (["apiservices"], ["get", "patch"])
    assert sorted(trusted["resourceNames"]) == sorted(NAMES)
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in of_kind("rights.yaml", "Role")["rules"]] == [
        (["create"], None),
        (["get", "patch"], [SETTINGS.secret]),
        (["create"], None),
        (["get", "patch", "update"], [SETTINGS.service]),
    ]
    reader, own = [one for one in documents("rights.yaml") if one["kind"] == "RoleBinding"]
    assert reader["metadata"]["namespace"] == OF_THE_PROXY
    assert reader["roleRef"]["name"] == "extension-apiserver-authentication-reader"
    assert own["metadata"]["namespace"] == SETTINGS.namespace


def test_it_reaches_the_bus_and_is_reached_by_the_api_server() -> None:
    policies = (CHART / "templates/network.yaml").read_text()
    assert "app.kubernetes.io/component: metrics-api}" in policies
    assert re.search(r"operator: In, values: \[[^\]]*\bmetrics-api\b", policies)
