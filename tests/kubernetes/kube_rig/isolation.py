"""The machine that a node runs on: network, mounts and cgroups of its own, on this machine's kernel.

What a node leaves behind (interfaces, rules, mounts, files, pods' processes) goes with the namespaces. Their cgroup
root is a group of ours, so that `kubepods` lies where it does on any node.
"""

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rig.packages import RigMissing, run

from kube_rig.groups import DAEMONS, Groups

INTERFACE = "sublet-k8s"
GROUPS = "sublet-kubernetes"
"""The root of the first node's groups."""
MACHINE_IP, NODE_IP, NETWORK = "10.213.0.1", "10.213.0.2", "10.213.0.0/16"
POD_NETWORK, SERVICE_NETWORK, API_SERVICE_IP = "10.213.64.0/18", "10.213.128.0/20", "10.213.128.1"
OWN_FOLDERS = ("/etc", "/opt", "/var/lib", "/var/log")
"""What the node writes there is seen by the node alone, and goes with it."""
_NO_PROXY = "NO_PROXY=*"
"""Whatever this machine's way to the world is, it is none to the cluster."""
_MOUNTS = Path("/proc/self/mounts")
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


class Line(Protocol):
    """What joins a machine to others."""

    def join(self, machine: "Isolation") -> None:
        """Make it, to a machine that is open."""

    def cut(self) -> None:
        """Take away what is left of it."""

    def left(self) -> list[str]:
        """What this machine still has of it; after `cut` nothing."""


class ToThisMachine:
    """The line of the first node, on which the control plane runs: tests reach it, and all others by it."""

    def join(self, machine: "Isolation") -> None:
        run(["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)])
        run(["ip", "address", "add", f"{MACHINE_IP}/24", "dev", INTERFACE])
        run(["ip", "link", "set", INTERFACE, "up"])
        run(machine.command(["ip", "address", "add", f"{NODE_IP}/24", "dev", "eth0"]))
        run(machine.command(["ip", "link", "set", "eth0", "up"]))
        # What starts here and goes to a Service, as a call of the API server, needs a way before the rules change it.
        run(machine.command(["ip", "route", "add", SERVICE_NETWORK, "dev", "eth0"]))
        run(["ip", "route", "add", NETWORK, "via", NODE_IP])

    def cut(self) -> None:
        if _interface().exists():  # the kernel takes its time
            subprocess.run(["ip", "link", "delete", INTERFACE], capture_output=True, check=False)

    def left(self) -> list[str]:
        found = [str(_interface())] if _interface().exists() else []
        found += run(["ip", "route", "show", "root", NETWORK]).splitlines()
        rules = run(["iptables-save"]).splitlines()
        return found + [rule for rule in rules if "10.213." in rule or "KUBE-" in rule or "CNI-" in rule]


class Isolation:
    """The namespaces, from `open` to `close`; they end with the thread that opened them, however that ends."""

    def __init__(self, cache: Path, line: Line, *, name: str = "node", groups: str = GROUPS) -> None:
        self.groups = Groups(_MOUNTS.read_text(), groups)
        self._line = line
        self._scratch = cache / name
        self._holder: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process that holds the namespaces."""
        if self._holder is None:
            raise RuntimeError(f"the namespaces of {self._scratch.name} are not open")
        return self._holder.pid

    def open(self) -> None:
        """Make them, as new.

        Raises:
            RigMissing: this machine does not let us; with its last words.
        """
        self.close()
        self.groups.make()
        self._scratch.mkdir()
        words = self._joined("", ["unshare", "--net", "--mount", "--cgroup", "sh", "-ec", self._set_up()])
        holder = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._holder = holder
        assert holder.stdout is not None
        with holder.stdout as told:
            said = told.read().decode()
        if said != "ready\n":
            raise RigMissing(f"no namespaces for the cluster: {said.strip()}")
        self._line.join(self)

    def close(self) -> None:
        """End whatever runs inside, pods too, and take everything away; also what a killed run has left.

        Raises:
            TimeoutError: a process does not end.
        """
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()
            self._holder = None
        self.groups.remove()
        self._line.cut()
        with contextlib.suppress(FileNotFoundError):
            self._scratch.rmdir()

    def left(self) -> list[str]:
        """What this machine still has of the node; after `close` nothing."""
        roots = (one.root for one in self.groups.hierarchies)
        found = [str(place) for place in (self._scratch, *roots) if place.exists()]
        found += [line for line in _MOUNTS.read_text().splitlines() if str(self._scratch.parent) in line]
        return found + self._line.left()

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The words that run a program inside; it ends with the thread that starts it."""
        enter = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--cgroup", "--", "env", _NO_PROXY]
        return self._joined(DAEMONS, [*enter, *map(str, words)])

    def _joined(self, group: str, words: Sequence[str]) -> list[str]:
        groups = [str(one.root / group) for one in self.groups.hierarchies]
        return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _JOIN, "join", *groups, "--", *words]

    def _set_up(self) -> str:
        """A script that runs inside, says so and stays."""
        lines = ["mount --make-rshared /", "mount -t sysfs none /sys", "mount -t tmpfs none /sys/fs/cgroup"]
        for one in self.groups.hierarchies:
            chosen = f"-o {one.chosen}" if one.chosen else ""
            lines += [f"mkdir -p {one.mounted_at}", f"mount -t {one.kind} {chosen} none {one.mounted_at}"]
            lines += [f"echo $$ > {one.mounted_at / DAEMONS / 'cgroup.procs'}"]
        lines.append(f"mount -t tmpfs none {self._scratch}")
        for folder in OWN_FOLDERS:
            upper, work = self._scratch / f"upper{folder}", self._scratch / f"work{folder}"
            lines += [f"mkdir -p {upper} {work}"]
            lines += [f"mount -t overlay none -o lowerdir={folder},upperdir={upper},workdir={work} {folder}"]
        lines += ["mount -t tmpfs none /run", "ip link set lo up", "echo 1 > /proc/sys/net/ipv4/ip_forward"]
        return "\n".join((*lines, "echo ready", "exec >/dev/null 2>&1 sleep infinity"))


def _interface() -> Path:
    return Path("/sys/class/net") / INTERFACE
