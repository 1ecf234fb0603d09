"""What the chart says of Koordinator's ConfigMap once it is followed: names are central's, rights are for it alone."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central.core.slo.node_strategies import NODE_SLO_FIELDS
from services.central.settings import SloConfigMapSettings
from shared.core.api_kind import NODE_SLOS

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
SETTINGS = SloConfigMapSettings()
RIGHTS = CHART / "templates/slo/rights.yaml"


def documents() -> list[dict[str, Any]]:
    plain = "\n".join(line for line in RIGHTS.read_text().splitlines() if not line.startswith("{{"))
    plain = re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain)
    plain = plain.replace("{{ .Values.slo.namespace }}", SETTINGS.namespace)
    plain = plain.replace("{{ .Values.slo.name }}", SETTINGS.name)
    return list(yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "1", plain)))


def test_it_is_off_and_has_the_names_that_central_has_by_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["slo"]
    assert values == {"enabled": False, "namespace": SETTINGS.namespace, "name": SETTINGS.name}
    assert RIGHTS.read_text().startswith("{{- if .Values.slo.enabled }}")
    deployment = (CHART / "templates/central/deployment.yaml").read_text()
    for name in ("ENABLED", "NAMESPACE", "NAME"):
        assert f"SUBLET_CENTRAL__KUBERNETES__SLO__{name}," in deployment


def test_central_writes_node_slos_and_events_of_the_config_map_and_nothing_more() -> None:
    writes = {
        resource: (one["kind"], one["metadata"].get("namespace"), sorted(set(rule["verbs"]) - {"get", "list", "watch"}))
        for one in documents()
        for rule in one.get("rules", ())
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
    }
    assert writes == {
        "events": ("Role", SETTINGS.namespace, ["create"]),
        NODE_SLOS.plural: ("ClusterRole", None, ["create", "delete", "patch"]),
    }


def test_the_kind_has_the_fields_that_central_writes_and_keeps_those_that_it_does_not_know() -> None:
    crd = yaml.safe_load((CHART / "crds/nodeslos.yaml").read_text())
    assert (crd["spec"]["group"], crd["spec"]["names"]["plural"]) == (NODE_SLOS.group, NODE_SLOS.plural)
    (version,) = crd["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(NODE_SLO_FIELDS.values()) | {"extensions"} == set(fields)
    for name, field in fields.items():
        kept = field.get("items", field)
        assert kept["x-kubernetes-preserve-unknown-fields"] is True, name


def test_the_webhook_is_asked_about_that_one_config_map_and_nobody_waits_for_it() -> None:
    text = (CHART / "templates/profiles/webhook.yaml").read_text()
    text = text[text.index("  - name: slo-config.sublet.io") :].split("{{- end }}")[0]
    text = text.replace("{{ .Values.slo.namespace }}", SETTINGS.namespace).replace(
        "{{ .Values.slo.name }}", SETTINGS.name
    )
    (hook,) = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "1", text))
    assert hook["failurePolicy"] == "Ignore"
    assert hook["rules"] == [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                              "resources": ["configmaps"], "scope": "Namespaced"}]  # fmt: skip
    assert hook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": SETTINGS.namespace}}
    assert [one["expression"] for one in hook["matchConditions"]] == [f"request.name == '{SETTINGS.name}'"]
    assert hook["clientConfig"]["service"]["path"] == "/validate-slo-config"


def test_central_reads_that_one_config_map_in_its_namespace() -> None:
    rules = [
        (one["kind"], one["metadata"].get("namespace"), rule)
        for one in documents()
        for rule in one.get("rules", ())
        if "configmaps" in rule["resources"]
    ]
    wanted = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [SETTINGS.name],
              "verbs": ["get", "list", "watch"]}  # fmt: skip
    assert rules == [("Role", SETTINGS.namespace, wanted)]
