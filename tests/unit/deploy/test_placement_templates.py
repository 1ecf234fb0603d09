"""Where the pods go that belong to no node: one value for all of them, so that none is forgotten."""

import json
import re
from pathlib import Path

import yaml

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
CONTROLLERS = re.compile(r"^kind: (?:Deployment|StatefulSet)$", re.MULTILINE)


def test_every_pod_that_belongs_to_no_node_goes_where_it_is_told() -> None:
    """A new Deployment: `{{- include "sublet.placement" . | trim | nindent 6 }}` in its pod."""
    found = 0
    for path in (CHART / "templates").rglob("*.yaml"):
        text = path.read_text()
        kinds = len(CONTROLLERS.findall(text))
        assert text.count('include "sublet.placement"') == kinds, path
        found += kinds
    assert found == 8


def test_busy_nodes_are_tolerated_whatever_is_added() -> None:
    names = (CHART / "templates/_names.tpl").read_text()
    placement = names[names.index('define "sublet.placement"') :]
    assert placement.index('include "sublet.busyNodes"') < placement.index("with .tolerations")


def test_nothing_is_said_by_default_and_no_other_word_is_taken() -> None:
    said = yaml.safe_load((CHART / "values.yaml").read_text())["placement"]
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["placement"]
    assert said == {"nodeSelector": {}, "tolerations": [], "affinity": {}}
    assert set(schema["properties"]) == set(said)
    assert schema["additionalProperties"] is False
