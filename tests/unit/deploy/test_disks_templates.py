"""The nodes' devices are mounted to write where the chart says so: for whoever sets disks, or gives them back."""

import re
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy/k8s"
CHART = DEPLOY / "chart"
TIMES = {"node/daemonset.yaml": 2, "uninstall.yaml": 1}
"""Containers that set disks, by template: the agent and the one that leaves, and the one that gives back."""
SWITCHED = re.compile(r"\{\{- if \.Values\.node\.disks \}\}\n(.*?)\{\{- end \}\}", re.DOTALL)


@pytest.mark.parametrize("template", TIMES)
def test_devices_are_mounted_by_the_value_alone(template: str) -> None:
    text = (CHART / "templates" / template).read_text()
    blocks = [yaml.safe_load(found) for found in SWITCHED.findall(text)]
    mount = [{"name": "devices", "mountPath": "/host/sys/devices"}]
    volume = [{"name": "devices", "hostPath": {"path": "/sys/devices", "type": "Directory"}}]
    assert blocks == [*[mount] * TIMES[template], volume]
    assert "/sys/devices" not in SWITCHED.sub("", text)


def test_it_is_off() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["node"]["disks"] is False
    rendered = [
        DEPLOY / "base/sublet.yaml",
        DEPLOY / "uninstall/uninstall.yaml",
        *DEPLOY.glob("overlays/*/sublet.yaml"),
    ]
    assert not [path for path in rendered if "/sys/devices" in path.read_text()]
