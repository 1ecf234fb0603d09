"""Which image each container of the chart has: a node's, that of the cluster's half, or the bus's."""

import base64
import re
from pathlib import Path

import pytest
import yaml

from deploy.artifacts.chart import say_where_from

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
IMAGE = re.compile(r"^ *image: (?P<said>.*)$", re.MULTILINE)
KIND = re.compile(r"^kind: (?P<kind>\w+)$", re.MULTILINE)
OF_A_NODE, OF_THE_CLUSTER, OF_THE_BUS = "sublet.nodeImage", "sublet.centralImage", "sublet.busImage"


def images_by_kind() -> list[tuple[str, str, str]]:
    """File, kind of object and helper of each container's image; others' images are values of their own."""
    found = []
    for path in sorted((CHART / "templates").rglob("*.yaml")):
        for document in path.read_text().split("\n---\n"):
            kinds = KIND.findall(document)
            for said in IMAGE.findall(document):
                if ".Values." not in said:
                    helper = re.fullmatch(r'\{\{ include "(sublet\.\w+Image)" [.$] \}\}', said)
                    assert helper, f"{path}: {said}"
                    found.append((path.name, kinds[-1], helper[1]))
    return found


def test_what_runs_on_each_node_has_the_image_of_nodes_and_all_else_that_of_the_cluster() -> None:
    found = images_by_kind()
    assert {kind for _, kind, _ in found} >= {"DaemonSet", "Deployment", "StatefulSet", "Job", "Pod"}
    for file, kind, helper in found:
        wanted = {OF_THE_BUS, OF_A_NODE if kind == "DaemonSet" else OF_THE_CLUSTER}
        assert helper in wanted, (file, kind)
    assert [kind for _, kind, helper in found if helper == OF_THE_BUS] == ["StatefulSet", "DaemonSet"]


def test_the_bus_has_the_image_with_a_server_in_it() -> None:
    names = (CHART / "templates/_names.tpl").read_text()
    assert '{{ .Values.bus.image | default (include "sublet.nodeImage" .) }}' in names


def test_the_chart_says_what_it_is_and_shows_a_picture_of_its_own() -> None:
    said = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {"keywords", "maintainers", "annotations", "icon"} <= said.keys()
    kind, _, picture = said["icon"].partition(";base64,")
    assert kind == "data:image/svg+xml"
    assert base64.b64decode(picture) == (CHART.parents[2] / "docs/site/icon.svg").read_bytes()


@pytest.mark.parametrize(("source", "said"), [("https://example.org/sublet", True), ("", False)])
def test_a_packed_chart_says_where_its_sources_are_if_anybody_can_reach_them(
    tmp_path: Path, source: str, said: bool
) -> None:
    file = tmp_path / "Chart.yaml"
    file.write_text("name: sublet\n")
    say_where_from(file, source)
    found = yaml.safe_load(file.read_text())
    assert ({"home": source, "sources": [source]}.items() <= found.items()) is said
