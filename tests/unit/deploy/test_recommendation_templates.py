"""What the chart says of recommendation once it is switched on: its rights, and kinds as central reads them."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central.adapters.recommendation.recommend_objects import MAX_USAGE_CHARACTERS, USAGE_CHECKPOINTS
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
RIGHTS = CHART / "templates/recommendation/rights.yaml"


def documents() -> list[dict[str, Any]]:
    plain = "\n".join(line for line in RIGHTS.read_text().splitlines() if not line.startswith("{{"))
    plain = re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain)
    return list(yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "1", plain)))


def test_it_is_off_and_gives_no_right_until_switched_on() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["recommendation"]["enabled"] is False
    assert RIGHTS.read_text().startswith("{{- if .Values.recommendation.enabled }}")
    deployment = (CHART / "templates/central/deployment.yaml").read_text()
    assert "SUBLET_CENTRAL__KUBERNETES__RECOMMENDATION__ENABLED" in deployment


def test_central_writes_statuses_checkpoints_and_resizes_and_nothing_more() -> None:
    writes = {
        resource: sorted(set(rule["verbs"]) - {"get", "list", "watch"})
        for one in documents()
        for rule in one.get("rules", ())
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
    }
    assert writes == {
        "resourcerecommends/status": ["patch"],
        "usagecheckpoints": ["create", "patch"],
        "pods/resize": ["patch"],
    }


def test_the_kinds_are_those_that_central_reads() -> None:
    for kind in (RESOURCE_RECOMMENDS, USAGE_CHECKPOINTS):
        spec = yaml.safe_load((CHART / f"crds/{kind.plural}.yaml").read_text())["spec"]
        (version,) = spec["versions"]
        assert (spec["group"], spec["names"]["kind"], version["name"]) == (kind.group, kind.kind, kind.version)
        assert (spec["scope"] == "Namespaced", "status" in version.get("subresources", {})) == (True, kind.status)


def test_a_checkpoint_may_be_as_long_as_central_reads_it() -> None:
    (version,) = yaml.safe_load((CHART / "crds/usagecheckpoints.yaml").read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["usage"]
    assert schema["maxLength"] == MAX_USAGE_CHARACTERS
