"""resctrl is mounted to write where the chart's value says so: for whoever makes groups there, or takes them away."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy/k8s"
CHART = DEPLOY / "chart"
WHO_WRITES = {"node/daemonset.yaml": {"leave", "agent"}, "uninstall.yaml": {"give-back"}}
WRITABLE = {"name": "resctrl", "mountPath": "/host/sys/fs/resctrl"}
SWITCHED = re.compile(r" *\{\{- if \.Values\.node\.resctrl \}\}\n(.*?) *\{\{- end \}\}\n", re.DOTALL)


def pod_spec(template: str, *, on: bool) -> dict[str, Any]:
    """The pod of the DaemonSet in a template; of its containers names, and what they mount."""
    text = SWITCHED.sub(lambda found: found[1] if on else "", (CHART / "templates" / template).read_text())
    (document,) = (one for one in text.split("\n---\n") if "kind: DaemonSet" in one)
    own = document[document.index("      initContainers:") :]
    lines = (line for line in own.splitlines() if not line.strip().startswith("{{"))
    plain = re.sub(r"\{\{.*?\}\}", "x", "\n".join(lines))
    found: dict[str, Any] = yaml.safe_load(re.sub(r" [&*]\w+", "", plain))
    return found


@pytest.mark.parametrize("template", WHO_WRITES)
def test_who_makes_or_removes_groups_may_write_there_and_nobody_else(template: str) -> None:
    spec = pod_spec(template, on=True)
    (volume,) = (one for one in spec["volumes"] if one["name"] == "resctrl")
    assert volume["hostPath"] == {"path": "/sys/fs/resctrl", "type": "Directory"}
    mounts = {
        one["name"]: mount
        for one in (*spec["initContainers"], *spec["containers"])
        for mount in one.get("volumeMounts", ())
        if mount["name"] == "resctrl"
    }
    assert mounts == dict.fromkeys(WHO_WRITES[template], WRITABLE)


@pytest.mark.parametrize("template", WHO_WRITES)
def test_it_is_off_and_then_nothing_of_it_is_mounted(template: str) -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["node"]["resctrl"] is False
    assert "resctrl" not in str(pod_spec(template, on=False))
    rendered = [
        *DEPLOY.glob("overlays/*/sublet.yaml"),
        DEPLOY / "base/sublet.yaml",
        DEPLOY / "uninstall/uninstall.yaml",
    ]
    assert not [path for path in rendered if "/sys/fs/resctrl" in path.read_text()]
