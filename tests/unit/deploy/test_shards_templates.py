"""What the chart says of heartbeats in shards: one value for hub and centrals, and nothing at all by default."""

import json
from pathlib import Path

import pytest
import yaml
from bus_rights_rig import divided, documents

from shared.contracts.cluster.heard import MOST_SHARDS

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
ONLY_IF = "gt (int .Values.central.shards) 1"


def test_they_are_not_divided_by_default() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["central"]["shards"] == 1
    assert not [one for one in documents() if "SHARDS" in json.dumps(one) or "partition" in json.dumps(one)]


def test_the_bound_of_the_value_is_that_of_the_setting() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["properties"]["central"]["properties"]["shards"] == {
        "type": "integer", "minimum": 1, "maximum": MOST_SHARDS
    }  # fmt: skip


@pytest.mark.parametrize("template", ["bus/config.yaml", "central/deployment.yaml"])
def test_each_line_that_says_the_number_stands_behind_one_that_asks_for_it(template: str) -> None:
    lines = (CHART / "templates" / template).read_text().splitlines()
    places = [place for place, line in enumerate(lines) if ".Values.central.shards" in line]
    assert places
    for place in places:
        assert ONLY_IF in "".join(lines[place - 2 : place + 1]), lines[place]


def test_the_hub_maps_what_leaves_say_and_lets_that_through_and_centrals_are_told_the_number() -> None:
    lines = "\n".join(divided(4).values())
    mapped = "sublet.cluster.v1.ready.{{partition(4,1)}}.{{wildcard(1)}}"
    assert f'mappings: {{ "sublet.cluster.v1.ready.*": "{mapped}" }}' in lines
    assert lines.count("sublet.cluster.v1.ready.*.*") == 2
    assert "{name: SUBLET_CENTRAL__SHARDS, value: " in (CHART / "templates/central/deployment.yaml").read_text()
