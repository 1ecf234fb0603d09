"""Every check of a node: a good node, each thing that can be wrong, and what cannot be known."""

from dataclasses import fields, replace
from typing import Any

import pytest

from shared.core.cgroups.kubelet_layout import KubeletLayout
from sublet.doctor.finding import Unknown, examine
from sublet.doctor.node.checks import NODE_CHECKS
from sublet.doctor.node.facts import BusSeen, CpuManager, HostFacts, Kubelet, PolicySeen

MIB = 1 << 20
V1, V2 = frozenset({"cpu", "cpuacct", "cpuset", "memory"}), frozenset({"cpu", "cpuset", "memory", "io"})
CGROUPFS, SYSTEMD, KIND = KubeletLayout("cgroupfs"), KubeletLayout("systemd"), KubeletLayout("systemd", "kubelet")
ADDRESS = "127.0.0.1:4222"
GOOD = HostFacts(
    root=True,
    kernel="6.1.0-28-amd64",
    pressure=True,
    cgroup_version=2,
    controllers=V2,
    read_only=(),
    cpu_idle=True,
    pod_controllers=V2,
    kubelet=Kubelet("systemd", "none"),
    layouts=(SYSTEMD,),
    cpu_manager=CpuManager("none", 0),
    state_dir="/var/lib/sublet",
    state_free_bytes=4096 * MIB,
    state_in_memory=False,
    memory_available_bytes=4096 * MIB,
    other_agents=(),
    bus=BusSeen(ADDRESS, "reached"),
    policy=PolicySeen("hub", allowed=True, forbidden=False),
)
NO_KUBELET = {"kubelet": Unknown("no process kubelet"), "cpu_manager": Unknown("no file"), "layouts": ()}

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("network policy", {"policy": PolicySeen("hub", allowed=True, forbidden=True)}, "warning", "not enforced"),
    ("network policy", {"policy": PolicySeen("hub", allowed=False, forbidden=False)}, "not checked", "says nothing"),
    ("kernel", {"kernel": "4.18.0-553.el8"}, "problem", "older than 4.19"),
    ("kernel", {"kernel": "5.4.0-200-generic"}, "warning", "cgroup v2 wants 5.8"),
    ("pressure", {"pressure": False}, "warning", "psi=1"),
    ("cgroups", {"controllers": frozenset({"cpu", "memory"})}, "problem", "without cpuset"),
    ("cgroups", {"cgroup_version": 1, "controllers": V1 - {"memory"}}, "problem", "cgroup_disable=memory"),
    ("writable cgroups", {"read_only": ("/sys/fs/cgroup",)}, "problem", "/sys/fs/cgroup is read-only"),
    ("writable cgroups", {"root": False}, "not checked", "sudo sublet doctor"),
    ("idle class", {"cpu_idle": False}, "warning", "5.15"),
    ("kubelet's driver", {"layouts": (CGROUPFS,)}, "warning", "cgroupDriver: cgroupfs"),
    ("pods' groups", {"layouts": ()}, "problem", "cgroupsPerQOS"),
    ("pods' groups", {"layouts": (CGROUPFS, SYSTEMD)}, "problem", "kubepods, kubepods.slice"),
    ("pods' groups", NO_KUBELET, "not checked", "sublet up"),
    ("pods' cpusets", {"pod_controllers": V2 - {"cpuset"}}, "problem", "+cpuset"),
    ("CPU manager", {"cpu_manager": CpuManager("static", 2), "kubelet": Kubelet("systemd", "static")}, "warning",
     "2 pods with CPUs of their own"),
    ("CPU manager", {"cpu_manager": Unknown("no file"), "kubelet": Kubelet("systemd", "static")}, "warning",
     "node.kubeletState=true"),
    ("CPU manager", {"kubelet": Kubelet("systemd", "static"), "cpu_manager": CpuManager("none", 0)}, "problem",
     "state file says none"),
    ("CPU manager", {"kubelet": Unknown("not seen"), "cpu_manager": CpuManager("static", 0)}, "warning", "static"),
    ("SELinux", {"selinux_enforced": True}, "warning", "node.seLinuxOptions"),
    ("SELinux", {"selinux_enforced": Unknown("denied")}, "not checked", ""),
    ("state folder", {"state_free_bytes": 63 * MIB}, "problem", "63 MiB"),
    ("state folder", {"state_in_memory": True}, "warning", "a reboot loses the history of evictions"),
    ("memory", {"memory_available_bytes": 255 * MIB}, "warning", "255 MiB"),
    ("other agents", {"other_agents": ("koordlet",)}, "problem", "remove koordlet"),
    ("bus", {"bus": BusSeen(ADDRESS, "refused", "wrong password")}, "problem", "SUBLET_NATS_URL"),
    ("bus", {"bus": BusSeen(ADDRESS, "absent", agent="here")}, "problem", "an agent runs"),
    ("bus", {"bus": BusSeen(ADDRESS, "absent", agent="elsewhere")}, "not checked", "exec"),
    ("bus", {"bus": BusSeen(ADDRESS, "absent")}, "not checked", "bring a server"),
]  # fmt: skip


def test_a_good_node_is_ok_in_every_respect() -> None:
    assert {row.check: row.finding.verdict for row in examine("node", NODE_CHECKS, GOOD)} == dict.fromkeys(
        NODE_CHECKS, "ok"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"cgroup_version": 1, "controllers": V1, "pod_controllers": V1, "kernel": "4.19.0"},
        {"layouts": (KIND,)},
        {"kubelet": Unknown("k3s has kubelet inside")},
        {"cpu_manager": Unknown("never written")},
        {"state_free_bytes": 64 * MIB, "memory_available_bytes": 256 * MIB},
    ],
)
def test_what_is_good_as_well(change: dict[str, Any]) -> None:
    rows = examine("node", NODE_CHECKS, replace(GOOD, **change))
    assert {row.finding.verdict for row in rows} <= {"ok", "not checked"}


@pytest.mark.parametrize(("check", "change", "verdict", "words"), WRONG)
def test_what_is_wrong_is_said_with_what_to_do(check: str, change: dict[str, Any], verdict: str, words: str) -> None:
    finding = NODE_CHECKS[check](replace(GOOD, **change))
    assert finding.verdict == verdict
    assert words in f"{finding.said} -> {finding.fix}"
    assert finding.fix or verdict == "not checked"
    assert "\n" not in finding.said + finding.fix


def test_every_check_is_made_to_fail_once() -> None:
    assert {check for check, *_ in WRONG} == set(NODE_CHECKS)


@pytest.mark.parametrize(("check", "change", "verdict", "words"), WRONG)
def test_what_is_not_known_is_never_ok(check: str, change: dict[str, Any], verdict: str, words: str) -> None:
    hidden: dict[str, Any] = {name: Unknown("hidden") for name in change if name != "root"}
    if hidden:
        assert NODE_CHECKS[check](replace(GOOD, **hidden)).verdict != "ok"


def test_of_a_node_of_which_nothing_is_known_nothing_is_ok() -> None:
    told = ("root", "state_dir")
    hidden: dict[str, Any] = {one.name: Unknown("hidden") for one in fields(GOOD) if one.name not in told}
    blank = replace(GOOD, **hidden)
    verdicts = {row.finding.verdict for row in examine("node", NODE_CHECKS, blank)}
    assert verdicts == {"not checked", "problem"}
    assert all("hidden" in row.finding.said for row in examine("node", NODE_CHECKS, blank))
