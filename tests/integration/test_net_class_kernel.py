"""The packets of batch work by class on this host's kernel: found by its id on cgroup v1, by its cgroup on v2.

What finds them, and holds them to a rate, are the host's own tc and iptables, as docs/isolation.md prints them; here in
a network namespace of the test's own.
"""

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from rig_parts import until

from services.qrm.adapters.kernel.isolation import GroupIsolation
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.net_classes import net_class_values
from services.qrm.former_values import FormerValues
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout

PAGE = Path(__file__).parents[2] / "docs/isolation.md"
PATIENCE_S = 60.0
ID, PACKETS = 1_048_577, 50
BATCH = Pod(uid="b" * 8, name="batch", qos="reclaimed_cores", kube_qos="BestEffort",
            containers=(Container(name="c", id=f"containerd://{'b' * 64}"),))  # fmt: skip
_SENDS = (
    "import socket\nwith socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:\n"
    f"    for _ in range({PACKETS}): out.sendto(b'x' * 1000, ('10.9.0.2', 9))\n"
)
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not all(map(shutil.which, ("ip", "tc", "iptables"))), reason="needs ip, tc and iptables"),
]


def run(*command: str, check: bool = True) -> str:
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


class Network:
    """A namespace with one card, and the page's lines in force on it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def do(self, command: str) -> str:
        return run("ip", "netns", "exec", self.name, *command.split())

    def packets(self, number: str) -> tuple[int, int]:
        """Packets that a tc class has let through, and how often it has made some wait."""
        (own,) = re.findall(rf"class htb {number} .*?Sent \d+ bytes (\d+) pkt \(dropped 0, overlimits (\d+)",
                            self.do("tc -s class show dev card"), re.DOTALL)  # fmt: skip
        return int(own[0]), int(own[1])

    def send(self, group: Path | None = None) -> None:
        """Send packets from within a cgroup, else from the test's own, and wait until the card has sent them."""
        before = sum(self.packets(number)[0] for number in ("10:1", "10:2"))
        enter = "" if group is None else f"echo $$ >{group}/cgroup.procs; "
        # Before it is in the namespace, where other mounts lie over the cgroups.
        run("sh", "-c", f'{enter}exec ip netns exec {self.name} "$0" -c "$1"', sys.executable, _SENDS)
        until(
            lambda: sum(self.packets(number)[0] for number in ("10:1", "10:2")) >= before + PACKETS,
            PATIENCE_S,
            "the packets to be sent",
        )


def lines_of_the_page(program: str) -> list[str]:
    """The commands of this program that the page prints."""
    return [line.partition(" #")[0] for line in PAGE.read_text().splitlines() if line.startswith(f"{program} ")]


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network(f"sublet-{uuid.uuid4().hex[:6]}")
    run("ip", "netns", "add", made.name)
    try:
        run("ip", "-n", made.name, "link", "add", "card", "type", "veth", "peer", "name", "far")
        for words in ("addr add 10.9.0.1/24 dev card", "link set card up", "link set far up",
                      "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev card"):  # fmt: skip
            run("ip", "-n", made.name, *words.split())
        for line in lines_of_the_page("tc"):
            made.do(line.replace("eth0", "card").replace("200mbit", "8mbit"))
        yield made
    finally:
        run("ip", "netns", "del", made.name)


def rule(network: Network, word: str, value: str) -> None:
    """The page's rule of iptables with this word, for another value."""
    (words,) = (words for line in lines_of_the_page("iptables") if word in (words := line.split()))
    words[words.index(word) + 1] = value
    try:
        network.do(" ".join(words))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"iptables finds no packets by cgroup on this kernel: {error.stderr.strip()[:100]}")


def test_on_v2_packets_are_found_by_their_cgroup_and_held_to_the_rate(network: Network) -> None:
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    if not places or not os.access(places[-1], os.W_OK):
        pytest.skip("needs a writable cgroup v2")
    group = Path(places[-1]) / f"sublet-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    try:
        rule(network, "--path", group.name)
        network.send(group)
        (found, waited), (others, _) = network.packets("10:1"), network.packets("10:2")
        assert found == PACKETS
        assert waited > 0, "more than the rate was asked for"
        network.send()
        assert network.packets("10:1")[0] == PACKETS
        assert network.packets("10:2")[0] >= others + PACKETS
    finally:
        group.rmdir()


@pytest.fixture
def net_cls(tmp_path: Path) -> Iterator[PlainCgroups]:
    """A tree of plain files in which the folder of net_cls is the kernel's."""
    plain = PlainCgroups(tmp_path, version=1)
    mount = plain.folder("", "net_cls")
    mount.mkdir()
    tried = subprocess.run(
        ["mount", "-t", "cgroup", "-o", "net_cls", "none", str(mount)], check=False, capture_output=True
    )
    if tried.returncode:
        pytest.skip("this kernel has no net_cls to mount")
    try:
        yield plain
    finally:
        for folder in sorted((path for path in mount.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        run("umount", str(mount))


def test_on_v1_qrm_writes_the_id_by_which_they_are_found_and_takes_it_back(
    network: Network, net_cls: PlainCgroups
) -> None:
    layout = KubeletLayout("cgroupfs")
    container = layout.container_group(BATCH, BATCH.containers[0])
    assert container is not None
    groups = (layout.pod_group(BATCH), container)
    for group in groups:
        net_cls.add(group)
        net_cls.folder(group, "net_cls").mkdir(parents=True, exist_ok=True)
    files = [net_cls.folder(group, "net_cls") / "net_cls.classid" for group in groups]
    isolation = GroupIsolation(CgroupWriter(net_cls.cgroups, layout.top), FormerValues())
    assert isolation.settle(net_class_values([BATCH], layout, {"reclaimed_cores": ID}), 0.0, 0.0) == []
    assert [file.read_text() for file in files] == [f"{ID}\n"] * 2
    assert isolation.lacking == ()
    rule(network, "--cgroup", str(ID))
    network.send(files[1].parent)
    assert network.packets("10:1")[0] == PACKETS
    assert isolation.give_back() == []
    assert [file.read_text() for file in files] == ["0\n"] * 2
    network.send(files[1].parent)
    assert network.packets("10:1")[0] == PACKETS, "nothing is found by the id any more"
