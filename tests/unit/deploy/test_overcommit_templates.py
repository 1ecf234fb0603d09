"""What the chart says of over-committed nodes once they are on: no kubelet waits, and rights are for that alone."""

from pathlib import Path
from typing import Any

import yaml

from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS
from services.central.core.overcommit.node_documents import KEYS

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
WEBHOOK = (CHART / "templates/profiles/webhook.yaml").read_text()
SWITCH = "{{- if .Values.overcommit.enabled }}"


def hook() -> dict[str, Any]:
    text = WEBHOOK.split(f"{SWITCH}\n  # Of Nodes", 1)[1].split("\n", 1)[1].split("{{- end }}", 1)[0]
    text = text.replace("{{ .Values.overcommit.timeoutSeconds }}", "1").replace("{{ .Release.Namespace }}", "x")
    (found,) = yaml.safe_load(text)
    return dict(found)


def test_it_is_off_until_somebody_switches_it_on() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["overcommit"]
    assert values == {"enabled": False, "timeoutSeconds": 1}
    assert (CHART / "templates/overcommit/rights.yaml").read_text().startswith(SWITCH)
    for template, name in (
        ("central/deployment", "SUBLET_CENTRAL__KUBERNETES__OVERCOMMIT__ENABLED"),
        ("node/daemonset", "SUBLET_REPORTER__OVERCOMMIT__ENABLED"),
    ):
        text = (CHART / f"templates/{template}.yaml").read_text()
        assert f'{SWITCH}\n            - {{name: {name}, value: "true"}}' in text


def test_a_kubelet_whose_webhook_is_away_loses_nothing() -> None:
    found = hook()
    assert (found["failurePolicy"], found["sideEffects"], found["timeoutSeconds"]) == ("Ignore", "None", 1)
    (rule,) = found["rules"]
    assert (rule["operations"], rule["resources"], rule["scope"]) == (["UPDATE"], ["nodes/status"], "Cluster")
    assert found["clientConfig"]["service"]["path"] == "/mutate-node-status"
    assert len(found["matchConditions"]) == 1


def test_central_may_write_the_annotations_and_amounts_that_it_writes_and_agents_neither() -> None:
    policy = (CHART / "templates/admission/node-agent.yaml").read_text()
    allowed = policy.split("- name: overcommit", 1)[1].split("- name: amounts", 1)[0]
    assert "variables.byCentral ?" in allowed
    for key in KEYS:
        head = key.rpartition("_")[0]
        assert f"'{key}'" in allowed or (f"'{head.rpartition('_')[0]}_' + field" in allowed)


def test_central_reads_configs_and_writes_their_status() -> None:
    text = (CHART / "templates/overcommit/rights.yaml").read_text()
    assert f"resources: [{OVERCOMMIT_CONFIGS.plural}/status]\n    verbs: [patch]" in text
    assert text.count("verbs:") == 2
    crd = yaml.safe_load((CHART / f"crds/{OVERCOMMIT_CONFIGS.plural}.yaml").read_text())
    assert (crd["spec"]["group"], crd["spec"]["names"]["kind"]) == (OVERCOMMIT_CONFIGS.group, OVERCOMMIT_CONFIGS.kind)
