"""The facts of a host, read from a folder that looks like one."""

import asyncio
import json
from pathlib import Path

import pytest

from shared.adapters.nats.embedded.server import NatsServer
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.errors import Unavailable
from sublet.doctor.finding import Unknown
from sublet.doctor.node import host_processes
from sublet.doctor.node.facts import BusSeen, CpuManager, HostFacts, Kubelet
from sublet.doctor.node.node_probe import HostProbe

NOWHERE = "nats://127.0.0.1:1"
SHORT_S, PATIENCE_S = 0.01, 20.0
UNIFIED = {"cgroup.controllers": "cpuset cpu io memory\n", "kubepods.slice/cgroup.controllers": "cpuset cpu memory\n",
           "kubepods.slice/cpu.idle": "0\n"}  # fmt: skip


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def process(root: Path, pid: int, *words: str) -> None:
    put(root, {f"proc/{pid}/cmdline": "".join(f"{word}\0" for word in words)})


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A node with cgroup v2, systemd's driver and a kubelet."""
    put(tmp_path / "sys/fs/cgroup", UNIFIED)
    put(tmp_path, {
        "proc/sys/kernel/osrelease": "6.1.0\n",
        "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "proc/meminfo": "MemTotal: 2048 kB\nMemAvailable:   1024 kB\n",
        "var/lib/kubelet/config.yaml": "cgroupDriver: systemd\ncpuManagerPolicy: static\n",
        "var/lib/kubelet/cpu_manager_state": json.dumps({"policyName": "static", "entries": {"uid-1": {"c": "2-3"}}}),
    })  # fmt: skip
    process(tmp_path, 700, "/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml")
    return tmp_path


def looked_at(host: Path, url: str = NOWHERE) -> HostFacts:
    wait_s = SHORT_S if url == NOWHERE else PATIENCE_S
    return asyncio.run(HostProbe(host, host / "state/not/made", url, "n1", bus_wait_s=wait_s).facts())


def test_all_of_a_node_is_read(host: Path) -> None:
    facts = looked_at(host)
    assert facts.kernel == "6.1.0"
    assert facts.pressure is True
    assert (facts.cgroup_version, facts.cpu_idle, facts.read_only) == (2, True, ())
    assert facts.controllers == frozenset({"cpuset", "cpu", "io", "memory"})
    assert facts.pod_controllers == frozenset({"cpuset", "cpu", "memory"})
    assert facts.kubelet == Kubelet("systemd", "static")
    assert facts.layouts == (KubeletLayout("systemd"),)
    assert facts.cpu_manager == CpuManager("static", 1)
    assert facts.memory_available_bytes == 1024 * 1024
    assert isinstance(facts.state_free_bytes, int)
    assert isinstance(facts.state_in_memory, bool)
    assert facts.other_agents == ()


def test_of_an_empty_folder_everything_is_unknown_and_nothing_raises(tmp_path: Path) -> None:
    facts = looked_at(tmp_path)
    unknown = {name for name in HostFacts.__slots__ if isinstance(getattr(facts, name), Unknown)}
    assert unknown == set(HostFacts.__slots__) - {
        "root",
        "pressure",
        "state_dir",
        "state_free_bytes",
        "state_in_memory",
        "bus",
    }
    assert facts.pressure is False


def test_cgroup_v1_is_told_by_its_hierarchies(host: Path) -> None:
    (host / "sys/fs/cgroup/cgroup.controllers").unlink()
    put(host / "sys/fs/cgroup", {f"{name}/kubepods/x": "" for name in ("cpu", "cpuset", "memory")})
    put(host / "sys/fs/cgroup", {f"{name}/cgroup.procs": "" for name in ("cpu", "cpuset", "memory")})
    facts = looked_at(host)
    assert facts.cgroup_version == 1
    assert facts.controllers == facts.pod_controllers == frozenset({"cpu", "cpuset", "memory"})
    assert facts.layouts == (KubeletLayout("cgroupfs"),)
    assert facts.cpu_idle is False


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--cgroup-driver", "cgroupfs"), Kubelet("cgroupfs", "none")),
        ((), Kubelet("cgroupfs", "none")),
        (("--config", "/var/lib/kubelet/config.yaml", "--cpu-manager-policy=none"), Kubelet("systemd", "none")),
        (("--root-dir=/data/kubelet",), Kubelet("cgroupfs", "none", "/data/kubelet")),
    ],
)
def test_flags_of_kubelet_win_over_its_configuration(host: Path, words: tuple[str, ...], expected: Kubelet) -> None:
    process(host, 700, "kubelet-v1.35.4", *words)
    assert host_processes.kubelet(host, host_processes.programs(host)) == expected


def test_pieces_of_configuration_come_on_top(host: Path) -> None:
    put(
        host,
        {"etc/kubelet.d/10-a.conf": "cgroupDriver: cgroupfs\n", "etc/kubelet.d/20-b.conf": "cpuManagerPolicy: none\n"},
    )
    process(host, 700, "kubelet", "--config=/var/lib/kubelet/config.yaml", "--config-dir=/etc/kubelet.d")
    assert looked_at(host).kubelet == Kubelet("cgroupfs", "none")


@pytest.mark.parametrize("text", ["- a list\n", ": : :\n", None, "cgroupDriver: other\n"])
def test_a_configuration_that_cannot_be_used_is_unknown_with_its_name(host: Path, text: str | None) -> None:
    path = host / "var/lib/kubelet/config.yaml"
    path.unlink() if text is None else path.write_text(text)
    found = looked_at(host).kubelet
    assert isinstance(found, Unknown)
    assert "config.yaml" in found.why or "'other'" in found.why


def test_a_checkpoint_that_says_nothing_is_unknown(host: Path) -> None:
    put(host, {"var/lib/kubelet/cpu_manager_state": "[]"})
    assert isinstance(looked_at(host).cpu_manager, Unknown)


def test_other_agents_are_found_by_their_programs(host: Path) -> None:
    process(host, 800, "/bin/koordlet", "-v=4")
    process(host, 801, "grep", "katalyst-agent")
    assert looked_at(host).other_agents == ("koordlet",)


def test_a_folder_that_cannot_be_written_is_named(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, _mode: "cgroup" not in str(path))
    assert looked_at(host).read_only == (str(host / "sys/fs/cgroup"),)


@pytest.mark.parametrize(("module", "place"), [("sublet.node", "elsewhere"), ("some.other", "none")])
def test_a_bus_that_is_not_there_is_told_with_whether_an_agent_needs_it(host: Path, module: str, place: str) -> None:
    process(host, 900, "python", "-m", module)
    bus = looked_at(host).bus
    assert not isinstance(bus, Unknown)
    assert (bus.state, bus.agent, bus.url) == ("absent", place, "127.0.0.1:1")


def test_an_agent_in_this_network_is_here(host: Path) -> None:
    process(host, 900, "python", "-m", "sublet.node")
    (host / "proc/900/ns").mkdir()
    (host / "proc/900/ns/net").symlink_to(Path("/proc/self/ns/net").readlink())
    bus = looked_at(host).bus
    assert not isinstance(bus, Unknown)
    assert bus.agent == "here"


def test_a_bus_that_refuses_the_login_is_not_one_that_is_absent(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Unavailable("wrong password", reason="login")

    monkeypatch.setattr("shared.adapters.nats.bus.connect", refuse)
    bus = looked_at(host, "nats://user:secret@hub:4222").bus
    assert bus == BusSeen("hub:4222", "refused", "wrong password")


def test_a_bus_that_answers_is_reached(host: Path, nats_server: NatsServer) -> None:
    bus = looked_at(host, nats_server.url).bus
    assert not isinstance(bus, Unknown)
    assert bus.state == "reached"


def test_a_kubelet_in_another_container_is_not_this_nodes(host: Path) -> None:
    for pid, namespace in ((1, "cgroup:[1]"), (700, "cgroup:[2]")):
        (host / f"proc/{pid}/ns").mkdir(parents=True)
        (host / f"proc/{pid}/ns/cgroup").symlink_to(namespace)
    found = looked_at(host).kubelet
    assert isinstance(found, Unknown)
    assert "kind" in found.why
