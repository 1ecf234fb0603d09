"""What the chart gives central for services that scale: each part its own rights, and none of them unless it is on."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.central.core.clock_bounds.autoscaler import AUTOSCALERS
from services.central.core.service_profiles.descriptor import DESCRIPTORS, DescriptorSpec
from services.central.core.vertical.stock_vpa import STOCK_VPAS
from services.central.core.vertical.vpa_object import KATALYST_VPAS, KatalystVpaSpec
from services.central.settings import ClockBoundsSettings, ServiceProfileSettings, VerticalSettings
from shared.core.api_kind import ApiKind

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
PARTS = {"clockBounds": "clock-bounds", "vertical": "vertical", "serviceProfiles": "service-profiles"}


def rules(part: str) -> dict[str, tuple[str, set[str]]]:
    """Group and verbs by resource."""
    text = (CHART / f"templates/recommendation/{PARTS[part]}.yaml").read_text()
    plain = "\n".join(line for line in text.splitlines() if not line.strip().startswith("{{"))
    plain = re.sub(r"\{\{.*?\}\}", "1", re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain))
    role, binding = yaml.safe_load_all(plain)
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == f"sublet-central-{PARTS[part]}"
    return {what: (rule["apiGroups"][0], set(rule["verbs"])) for rule in role["rules"] for what in rule["resources"]}


def test_each_part_is_off_as_central_has_it_by_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["recommendation"]
    settings = {"clockBounds": ClockBoundsSettings(), "vertical": VerticalSettings(),
                "serviceProfiles": ServiceProfileSettings()}  # fmt: skip
    assert {part: values[part] for part in PARTS} == {part: one.model_dump() for part, one in settings.items()}


@pytest.mark.parametrize("part", PARTS)
def test_its_rights_and_its_setting_come_with_its_switch_alone(part: str) -> None:
    text = (CHART / f"templates/recommendation/{PARTS[part]}.yaml").read_text()
    assert text.startswith(f"{{{{- if .Values.recommendation.{part}.enabled }}}}")
    deployment = (CHART / "templates/central/deployment.yaml").read_text()
    name = PARTS[part].replace("-", "_").upper()
    switch = f"{{{{- if .Values.recommendation.{part}.enabled }}}}\n"
    assert f"{switch}            - {{name: SUBLET_CENTRAL__KUBERNETES__{name}__ENABLED," in deployment


def test_central_writes_these_objects_and_nothing_more() -> None:
    writes = {
        part: {f"{group}/{what}": sorted(verbs - {"get", "list", "watch"})
               for what, (group, verbs) in rules(part).items() if verbs - {"get", "list", "watch"}}
        for part in PARTS
    }  # fmt: skip
    assert writes == {
        "clockBounds": {f"{AUTOSCALERS.group}/{AUTOSCALERS.plural}": ["patch"]},
        "vertical": {
            f"{KATALYST_VPAS.group}/{KATALYST_VPAS.plural}/status": ["patch"],
            f"{STOCK_VPAS.group}/{STOCK_VPAS.plural}": ["patch"],
            "/pods/resize": ["patch"],
        },
        "serviceProfiles": {
            f"{DESCRIPTORS.group}/{DESCRIPTORS.plural}": ["create", "delete", "patch"],
            f"{DESCRIPTORS.group}/{DESCRIPTORS.plural}/status": ["patch"],
            "/pods": ["patch"],
        },
    }


def test_what_central_mirrors_it_may_watch() -> None:
    central = yaml.safe_load(
        re.sub(r"\{\{.*?\}\}", "1", re.sub(r"labels: \{\{.*\}\}", "labels: {}", (
            CHART / "templates/rights/central.yaml").read_text().split("---")[1]))
    )  # fmt: skip
    own = {what for rule in central["rules"] for what in rule["resources"] if "watch" in rule["verbs"]}
    mirrored = {
        "clockBounds": {AUTOSCALERS.plural},
        "vertical": {KATALYST_VPAS.plural, STOCK_VPAS.plural, "resourcerecommends", "deployments", "pods"},
        "serviceProfiles": {DESCRIPTORS.plural, "deployments", "pods"},
    }
    for part, kinds in mirrored.items():
        watched = {what for what, (_, verbs) in rules(part).items() if {"get", "list", "watch"} <= verbs}
        assert kinds <= watched | own, part


@pytest.mark.parametrize(("kind", "spec"), [(KATALYST_VPAS, KatalystVpaSpec), (DESCRIPTORS, DescriptorSpec)])
def test_the_kinds_have_every_field_that_central_reads(kind: ApiKind, spec: Any) -> None:
    crd = yaml.safe_load((CHART / f"crds/{kind.plural}.yaml").read_text())
    assert (crd["spec"]["group"], crd["spec"]["names"]["kind"]) == (kind.group, kind.kind)
    (version,) = crd["spec"]["versions"]
    assert version["name"] == kind.version
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert {field.alias for field in spec.model_fields.values()} <= set(schema)
