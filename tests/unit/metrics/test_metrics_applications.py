"""Applications outside of pods: measured in cgroups of their own, never together with a pod or another application."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from kernel_trees import KernelTree
from metrics_world import running
from pydantic import ValidationError

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LayoutTargets
from services.metrics.core.applications import MeasuredApplication, PlacedApplications, application_readings, place
from services.metrics.core.figures.results import LastPass
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from services.metrics.settings import MOST_APPLICATIONS, MetricsSettings
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ApplicationReading, NodeSample
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import Layout, OwnLayout

MIB, S = 1 << 20, 10**9
KUBELET, SYSTEMD = KubeletLayout("cgroupfs"), KubeletLayout("systemd")
WEB = Pod(uid="aa", name="web", kube_qos="Burstable", containers=(Container(name="main"),))
JOB = Pod(uid="bb", name="job", qos="reclaimed_cores", kube_qos="BestEffort", containers=(Container(name="main"),))


def app(path: str, name: str = "yarn", base: Any = "CgroupRoot", **more: Any) -> MeasuredApplication:
    """As the settings would give it; an empty path they do not take."""
    return MeasuredApplication.model_construct(name=name, base=base, path=path, **more)


@pytest.mark.parametrize(
    ("one", "layout", "group", "pool"),
    [
        (app("host-latency-sensitive/nginx"), KUBELET, "host-latency-sensitive/nginx", ""),
        (app("hadoop-yarn", base="KubepodsBesteffort"), KUBELET, "kubepods/besteffort/hadoop-yarn", "reclaim"),
        (app("hadoop-yarn", base="KubepodsBurstable"), KUBELET, "kubepods/burstable/hadoop-yarn", ""),
        (app("other", base="Kubepods"), KUBELET, "kubepods/other", ""),
        (app("y", base="KubepodsBesteffort"), SYSTEMD, "kubepods.slice/kubepods-besteffort.slice/y", "reclaim"),
        (app("system.slice/nginx.service"), OwnLayout(), "system.slice/nginx.service", ""),
        (app("sublet/reclaimed_cores/batchd"), OwnLayout(), "sublet/reclaimed_cores/batchd", "reclaim"),
    ],
)
def test_where_an_application_runs(one: MeasuredApplication, layout: Layout, group: str, pool: str) -> None:
    found = place([one], layout, [WEB, JOB])
    assert [target.group for target in found.targets] == [group]
    assert found.pools.get(one.name, "") == pool
    assert found.refused == {}


@pytest.mark.parametrize(
    ("one", "layout", "why"),
    [
        (app(""), KUBELET, "cgroup / holds pods"),
        (app("kubepods"), KUBELET, "cgroup kubepods holds pods"),
        (app("kubepods/burstable"), KUBELET, "holds pods"),
        (app("", base="KubepodsBesteffort"), KUBELET, "kubepods/besteffort holds pods"),
        (app("kubepods.slice"), SYSTEMD, "holds pods"),
        (app("kubelet"), KubeletLayout("cgroupfs", "kubelet"), "holds pods"),
        (app("sublet"), OwnLayout(), "holds pods"),
        (app("sublet/shared_cores"), OwnLayout(), "holds pods"),
        (app("podaa", base="KubepodsBurstable"), KUBELET, "cgroup kubepods/burstable/podaa is a pod's"),
        (app("podaa/deep/down", base="KubepodsBurstable"), KUBELET, "is a pod's"),
        (app("y", base="Kubepods"), OwnLayout(), "no kubelet runs here; name the path with base CgroupRoot"),
    ],
)
def test_a_cgroup_that_is_not_its_own_is_refused(one: MeasuredApplication, layout: Layout, why: str) -> None:
    found = place([one], layout, [WEB, JOB])
    assert found.targets == ()
    assert why in found.refused["yarn"]
    (reading,) = application_readings([one], found, {}, {})
    assert why in reading.unmeasured
    assert (reading.cpu_usage_cores, reading.memory_usage_bytes) == (None, None)


@pytest.mark.parametrize("second", ["apps/yarn", "apps/yarn/manager", "apps"])
def test_nothing_is_counted_with_two_applications(second: str) -> None:
    found = place([app("apps/yarn"), app(second, "nm"), app("apps/yarn2", "other")], KUBELET, [])
    assert [target.name for target in found.targets] == ["yarn", "other"]
    assert "counted with yarn already" in found.refused["nm"]


class Node:
    """A node with kubelet's groups, measured pass by pass."""

    def __init__(self, folder: Path, version: int) -> None:
        self.tree = KernelTree(folder, version)
        self.tree.machine()
        self.tree.node()
        for group in KUBELET.homes:
            self.tree.group(group)
        self.host = HostReader(folder, Cgroups(folder))
        self.collector = Collector(self.host, known_sources(), LayoutTargets(folder, KUBELET), lambda: self.now_s)
        self.now_s, self.last, self.placed = 0.0, LastPass(), PlacedApplications()

    def sample(self, applications: Sequence[MeasuredApplication]) -> NodeSample:
        self.now_s += 2.0
        self.placed = place(applications, KUBELET, ())
        collected = self.collector.collect((), self.placed.targets)
        assert collected.failures == {}
        fields, self.last = summarise(self.last, collected.readings, self.collector.offered, (), self.now_s)
        fields["host_applications"] = application_readings(
            applications, self.placed, self.last.results, collected.unread
        )
        made = NodeSample(node="n", boot_id="0" * 8, seq=1, sent_at=datetime.now(UTC), **fields)
        return NodeSample.decode(made.encode())


@pytest.fixture(params=[1, 2], ids=["cgroup v1", "cgroup v2"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, request.param)


def test_an_applications_cpu_and_memory_are_those_of_its_cgroup(node: Node) -> None:
    yarn = app("y", base="KubepodsBesteffort", qos="BE", priority="koord-batch")
    node.tree.group("kubepods/besteffort/y", usage_ns=10 * S, memory=300 * MIB, inactive_file=100 * MIB)
    first = node.sample([yarn]).host_applications[0]
    assert (first.cpu_usage_cores, first.memory_used_bytes) == (None, 200 * MIB)
    node.tree.group("kubepods/besteffort/y", usage_ns=13 * S, memory=300 * MIB, inactive_file=100 * MIB)
    sample = node.sample([yarn])
    (found,) = sample.host_applications
    assert found.cpu_usage_cores == pytest.approx(1.5)
    assert (found.name, found.qos, found.priority) == ("yarn", "BE", "koord-batch")
    assert found.unmeasured == ""
    assert "yarn" not in {pool.pool for pool in sample.pools}


def test_a_cgroup_that_is_missing_is_said_and_is_not_zero(node: Node) -> None:
    (found,) = node.sample([app("gone")]).host_applications
    assert found == ApplicationReading(
        name="yarn", unmeasured="no cgroup gone on this node: it does not run, or runs elsewhere"
    )
    node.tree.group("gone", usage_ns=0)
    assert node.sample([app("gone")]).host_applications[0].unmeasured == ""


def test_without_applications_the_targets_are_the_very_same_list(node: Node) -> None:
    node.collector.collect(())
    before = node.host._targets
    node.collector.collect((), ())
    assert node.host._targets is before
    wanted = place([app("x")], KUBELET, ()).targets
    node.collector.collect((), wanted)
    together = node.host._targets
    node.collector.collect((), wanted)
    assert node.host._targets is together
    assert [one.name for one in together if one.kind == "application"] == ["yarn"]


def test_the_settings_reach_the_next_pass(virtual: Virtual) -> None:
    async def story() -> None:
        async with running() as service:
            await asyncio.sleep(3)
            assert not service.last.host_applications
            service.app.reconfigure({"host_applications": [{"name": "yarn", "path": "y", "qos": "BE"}]})
            await asyncio.sleep(3)
            assert [(one.name, one.qos) for one in service.last.host_applications] == [("yarn", "BE")]
            service.app.reconfigure({})
            await asyncio.sleep(3)
            assert not service.last.host_applications

    virtual(story())


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ([{"name": "a", "path": "../x"}], "component '..' is not allowed; want names of cgroups"),
        ([{"name": "a", "path": "x/../../y"}], "component '..' is not allowed"),
        ([{"name": "a", "path": "x\0"}], "is not allowed"),
        ([{"name": "a", "path": "x" * 257}], "at most 256 characters"),
        ([{"name": "", "path": "x"}], "pattern"),
        ([{"name": "a", "path": "x"}, {"name": "a", "path": "y"}], "a is named twice"),
        ([{"name": f"a{n}", "path": f"x{n}"} for n in range(MOST_APPLICATIONS + 1)], "at most 16 items"),
    ],
)
def test_settings_that_name_no_cgroup_are_refused(listed: list[dict[str, str]], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        MetricsSettings.model_validate({"host_applications": listed})


def test_slashes_too_many_are_left_out() -> None:
    (one,) = MetricsSettings.model_validate({"host_applications": [{"name": "a", "path": "//x//y/"}]}).host_applications
    assert one.path == "x/y"
