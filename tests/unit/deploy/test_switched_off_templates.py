"""What the chart says of parts that are switched off: what takes their remains away has rights for the moment."""

import re
from pathlib import Path

from sublet.cluster.leftovers.parts import PARTS
from sublet.cluster.switched_off import SWITCHES

TEMPLATES = Path(__file__).parents[3] / "deploy/k8s/chart/templates"
KEPT = {"recommendation"}
"""What it learned is there when it is switched on again; an uninstall takes it away."""


def test_every_part_has_a_switch() -> None:
    names = (TEMPLATES / "_names.tpl").read_text()
    block = names[names.index('define "sublet.switches"') : names.index("range $part")]
    assert set(re.findall(r'^    "([a-z-]+)"', block, re.MULTILINE)) == PARTS.keys() - KEPT
    assert f'"{SWITCHES}"' in block


def test_an_upgrade_that_switches_nothing_off_makes_no_job_and_gives_no_rights() -> None:
    text = (TEMPLATES / "switched-off.yaml").read_text()
    job = text.index("kind: Job")
    assert text.rindex('{{- with include "sublet.switchedOff" . }}') < job
    uninstall = (TEMPLATES / "uninstall.yaml").read_text()
    assert 'post-delete{{ if include "sublet.switchedOff" . }},post-upgrade{{ end }}' in uninstall
    daemonset = uninstall[uninstall.index("kind: DaemonSet") :]
    assert "sublet.cleaner" not in daemonset, "nodes are given back at an uninstall alone"
    assert uninstall[: uninstall.index("kind: DaemonSet")].count('include "sublet.cleaner"') == 5
