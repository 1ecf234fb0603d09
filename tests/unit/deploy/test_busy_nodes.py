"""A node's pressure keeps pods away, and not those that decide what becomes of it."""

from pathlib import Path

import pytest
import yaml

from services.evictor.core.detectors.cpu import load, numa, numa_sys
from shared.contracts.kube.taint import TAINT_PREFIX

K8S = Path(__file__).parents[3] / "deploy/k8s"


@pytest.mark.parametrize("condition", [load.CONDITION, numa.CONDITION, numa_sys.CONDITION])
def test_who_decides_what_becomes_of_a_busy_cpu_may_start_beside_it(condition: str) -> None:
    key, _, effect = condition.partition("/")
    tolerated = {"key": f"{TAINT_PREFIX}{key}", "operator": "Exists", "effect": effect}
    manifests = ("base/sublet.yaml", "overlays/default/sublet.yaml")
    documents = [one for path in manifests for one in yaml.safe_load_all((K8S / path).read_text())]
    deciding = [one for one in documents if one["kind"] in ("Deployment", "StatefulSet")]
    assert {"sublet-bus", "sublet-central"} <= {one["metadata"]["name"] for one in deciding}
    for document in deciding:
        assert tolerated in document["spec"]["template"]["spec"]["tolerations"], document["metadata"]["name"]
