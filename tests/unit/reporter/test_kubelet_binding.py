"""What kubelet binds to pods is said as its checkpoints say it; where they cannot be read, the node bears nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.overcommit.fit import kubelet_binding as seen_by_the_extender
from services.central.core.overcommit.node_report import node_report_of
from services.reporter.core.overcommit.kubelet_binding import KubeletManagers, kubelet_binding
from services.reporter.reports.kubelet_binding import KubeletBindingReport
from shared.adapters.host import kubelet_checkpoints
from shared.adapters.host.kubelet_checkpoints import (
    CPU_MANAGER_FILE,
    MEMORY_MANAGER_FILE,
    KubeletCheckpoints,
    read_checkpoint,
)
from shared.contracts.kube.overcommit import CPU_MANAGER, GUARANTEED_CPUS, MEMORY_MANAGER
from shared.errors import Refused, Unavailable

ENTRIES = {"uid-1": {"first": "1-2", "main": "1-2"}, "uid-2": {"main": "5"}}
"""An init container has handed its CPUs on."""
STATIC, NONE = {"policyName": "static", "entries": ENTRIES}, {"policyName": "none", "entries": ENTRIES}


@pytest.mark.parametrize(
    ("cpu", "memory", "annotations"),
    [
        (None, None, {}),
        (STATIC, {"policyName": "Static"}, {CPU_MANAGER: "static", MEMORY_MANAGER: "Static", GUARANTEED_CPUS: "3"}),
        (NONE, {"policyName": "None"}, {CPU_MANAGER: "none", MEMORY_MANAGER: "None"}),
        ({"policyName": "static"}, None, {CPU_MANAGER: "static", GUARANTEED_CPUS: "0"}),
    ],
)
def test_the_policies_and_the_bound_cpus_are_said_as_katalyst_says_them(
    cpu: dict[str, Any] | None, memory: dict[str, Any] | None, annotations: Mapping[str, str]
) -> None:
    assert kubelet_binding(cpu, memory).annotations == annotations


def test_central_and_the_extender_read_what_the_agent_says() -> None:
    said = {"metadata": {"name": "n1", "annotations": kubelet_binding(STATIC, {"policyName": "Static"}).annotations}}
    assert node_report_of(said).bound_cpu_millis == 3000
    assert seen_by_the_extender(said) == seen_by_the_extender(
        {"metadata": {"annotations": {CPU_MANAGER: "static", MEMORY_MANAGER: "Static", GUARANTEED_CPUS: "3"}}}
    )


@pytest.mark.parametrize(
    "cpu",
    [{}, {"policyName": 5}, {"policyName": "dynamic"}, STATIC | {"entries": {"u": {"c": "x"}}},
     STATIC | {"entries": [1]}, STATIC | {"entries": {"u": 5}}, STATIC | {"entries": {"u": {"c": 5}}}],
)  # fmt: skip
def test_what_is_not_known_is_not_taken_for_nothing(cpu: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="checkpoint of kubelet's CPU manager"):
        kubelet_binding(cpu, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["static", "0-3", "9-1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["policyName", "entries", "u"]), inner),
    max_leaves=12,
)


@given(cpu=st.dictionaries(st.sampled_from(["policyName", "entries"]), JSON), memory=st.none() | st.just(NONE))
def test_whatever_stands_in_a_checkpoint_it_is_a_binding_or_a_refusal(
    cpu: dict[str, Any], memory: dict[str, Any] | None
) -> None:
    try:
        found = kubelet_binding(cpu, memory)
    except Refused:
        return
    assert found.guaranteed_cpus >= 0
    assert all(isinstance(text, str) for text in found.annotations.values())


def write(root: Path, file: str, document: Any) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(document if isinstance(document, str) else json.dumps(document))
    new.replace(path)


def test_a_checkpoint_is_read_anew_where_kubelet_has_replaced_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = KubeletBindingReport(KubeletCheckpoints(tmp_path).read)
    report.follow(wanted=True)
    assert report.said == KubeletManagers(), "there is no kubelet"
    write(tmp_path, CPU_MANAGER_FILE, STATIC)
    write(tmp_path, MEMORY_MANAGER_FILE, {"policyName": "None"})
    report.follow(wanted=True)
    assert report.said == KubeletManagers("static", "None", 3)
    opened: list[str] = []

    def counted(root: Path, file: str) -> dict[str, Any] | None:
        opened.append(file)
        return read_checkpoint(root, file)

    monkeypatch.setattr(kubelet_checkpoints, "read_checkpoint", counted)
    report.follow(wanted=True)
    assert opened == []
    write(tmp_path, CPU_MANAGER_FILE, NONE)
    report.follow(wanted=True)
    assert report.said == KubeletManagers("none", "None")
    assert opened == [CPU_MANAGER_FILE]


@pytest.mark.parametrize("text", ["{", "[]", " " * (5 << 20), '{"policyName": "x"}'], ids=["open", "list", "huge", "x"])
def test_an_unreadable_one_is_told_and_nothing_is_said(tmp_path: Path, text: str) -> None:
    write(tmp_path, CPU_MANAGER_FILE, text)
    report = KubeletBindingReport(KubeletCheckpoints(tmp_path).read)
    report.follow(wanted=True)
    assert report.said is None
    (condition,) = report.conditions()
    assert condition.type == "KubeletManagersUnreadable"
    assert "no over-commitment is borne" in condition.message
    report.follow(wanted=False)
    assert (report.conditions(), report.said) == ((), None)
    write(tmp_path, CPU_MANAGER_FILE, STATIC)
    report.follow(wanted=True)
    assert report.conditions() == ()


def test_it_is_not_looked_at_while_nobody_wants_it() -> None:
    def read() -> tuple[None, None]:
        raise Unavailable("asked")

    report = KubeletBindingReport(read)
    report.follow(wanted=False)
    assert report.failure == ""
