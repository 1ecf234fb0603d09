"""What the chart says of Koordinator's ConfigMap once it is followed: names are central's, rights are for it alone."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central.settings import SloConfigMapSettings

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
