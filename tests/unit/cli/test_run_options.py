"""What `sublet run` makes of the options that say where a pod wants to run."""

import json
from typing import Any

import pytest

from shared.core.pods.qos import DOMAIN
from shared.errors import Refused
from sublet.commands.run import enhancements

MEMORY, CPU = f"{DOMAIN}memory_enhancement", f"{DOMAIN}cpu_enhancement"


@pytest.mark.parametrize(
    ("qos", "options", "wanted"),
    [
        ("shared", {}, {}),
        ("reclaimed", {"bound": True}, {MEMORY: {"numa_binding": "true"}}),
        ("shared", {"pool": "flink"}, {CPU: {"cpuset_pool": "flink"}}),
        ("dedicated", {}, {MEMORY: {"numa_binding": "true"}}),
        ("dedicated_cores", {"exclusive": True}, {MEMORY: {"numa_binding": "true", "numa_exclusive": "true"}}),
    ],
)
def test_options_become_the_annotations_of_the_pod(
    qos: str, options: dict[str, Any], wanted: dict[str, dict[str, str]]
) -> None:
    found = enhancements(qos, **{"bound": False, "exclusive": False, "pool": "", **options})
    assert {name: json.loads(text) for name, text in found.items()} == wanted


@pytest.mark.parametrize(("qos", "options"), [("shared", {"exclusive": True}), ("reclaimed", {"pool": "flink"})])
def test_an_option_that_the_class_does_not_have_is_refused(qos: str, options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="leave it out"):
        enhancements(qos, **{"bound": False, "exclusive": False, "pool": "", **options})
