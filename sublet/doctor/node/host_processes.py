"""Finds a host's programs in its /proc, and reads kubelet's configuration."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.adapters.host.hostfs import read_text
from shared.core.cgroups.kubelet_layout import DRIVERS
from shared.errors import Refused
from shared.text_file import read_yaml_file
from sublet.doctor.finding import Known, Unknown
from sublet.doctor.node.facts import KUBELET_ROOT, AgentPlace, Kubelet
from sublet.doctor.node.neighbours import AGENTS

OWN = ("sublet.node", "services.qrm", "sublet._services.qrm")
"""Modules by which an agent of Sublet is known; a wheel has `services` inside `sublet`."""
_KUBELET = re.compile(r"^kubelet(-v[0-9.]+)?\Z")


@dataclass(frozen=True, slots=True)
class Program:
    """One process: its number and its words."""

    pid: int
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The program's own name, without its folder."""
        return self.words[0].rpartition("/")[2]


def programs(host_root: Path) -> list[Program]:
    """All processes that have words, by number; kernel threads have none.

    Raises:
        OSError: /proc cannot be read.
    """
    found = []
    for name in os.listdir(host_root / "proc"):  # noqa: PTH208 - names alone are wanted, of thousands
        if name.isdigit():
            try:
                text = read_text(f"{host_root}/proc/{name}/cmdline")
            except OSError:  # another user's, where /proc hides those
                continue
            if words := tuple(filter(None, (text or "").split("\0"))):
                found.append(Program(int(name), words))
    return sorted(found, key=lambda program: program.pid)


def other_agents(running: Sequence[Program]) -> tuple[str, ...]:
    """Colocation agents that are not Sublet's."""
    names = {program.name for program in running}
    return tuple(name for name in AGENTS if name in names)


def own_agent(host_root: Path, running: Sequence[Program]) -> AgentPlace:
    """Whether an agent of Sublet is among them, and in the network of this process."""
    agents = [one for one in running if any(module in one.words for module in OWN)]
    if not agents:
        return "none"
    return "here" if any(_same_network(host_root, one.pid) for one in agents) else "elsewhere"


def _same_network(host_root: Path, pid: int) -> bool:
    try:
        own, its = os.readlink("/proc/self/ns/net"), os.readlink(host_root / f"proc/{pid}/ns/net")  # noqa: PTH115
    except OSError:  # without the right to look
        return False
    return own == its


def kubelet(host_root: Path, running: Sequence[Program]) -> Known[Kubelet]:
    """Driver and CPU manager policy by kubelet's flags, which win, and its configuration.

    What neither names is kubelet's default, cgroupfs and none ("KubeletConfiguration v1beta1").
    """
    found = [one for one in running if _KUBELET.match(one.name)]
    program = next((one for one in found if not _elsewhere(host_root, one.pid)), None)
    if program is None:
        inner = "; one runs in a container of its own (kind, k3d): ask in there" if found else ""
        return Unknown(f"no process kubelet is seen on this host{inner}")
    flags = _flags(program.words)
    try:
        config = _configuration(host_root, program.pid, flags)
    except (OSError, ValueError, Refused) as error:
        return Unknown(f"kubelet's configuration {flags.get('config')}: {error}")
    driver = str(flags.get("cgroup-driver") or config.get("cgroupDriver") or "cgroupfs")
    policy = str(flags.get("cpu-manager-policy") or config.get("cpuManagerPolicy") or "none")
    named = next((known for known in DRIVERS if known == driver), None)
    if named is None:
        return Unknown(f"kubelet's cgroup driver {driver!r} is not known; known are {', '.join(DRIVERS)}")
    return Kubelet(named, policy, flags.get("root-dir") or KUBELET_ROOT)


def _elsewhere(host_root: Path, pid: int) -> bool:
    """Whether a process sees another cgroup tree than this host: then it is that of a node of its own."""
    host = "self" if host_root == Path("/") else "1"
    try:
        seen = {os.readlink(host_root / f"proc/{one}/ns/cgroup") for one in (host, pid)}  # noqa: PTH115 - no path
    except OSError:  # without the right to look, or made up: taken for this host's
        return False
    return len(seen) > 1


def _flags(words: Sequence[str]) -> dict[str, str]:
    """`--name=value` and `--name value`."""
    flags = {}
    for word, following in zip(words[1:], (*words[2:], ""), strict=False):
        name, given, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            flags[name] = value if given else following
    return flags


def _configuration(host_root: Path, pid: int, flags: Mapping[str, str]) -> dict[str, Any]:
    """The file, and the pieces of `--config-dir` on top of it in the order of their names."""
    merged: dict[str, Any] = {}
    for path in _files(host_root, pid, flags):
        document = read_yaml_file(path, what="file").value
        if not isinstance(document, dict):
            raise ValueError("is not a mapping")
        merged |= document
    return merged


def _files(host_root: Path, pid: int, flags: Mapping[str, str]) -> Iterator[Path]:
    if name := flags.get("config"):
        yield _inside(host_root, pid, name)
    if name := flags.get("config-dir"):
        yield from sorted(_inside(host_root, pid, name).rglob("*.conf"))


def _inside(host_root: Path, pid: int, name: str) -> Path:
    """A file of kubelet's: on this host's disk, or where kubelet itself sees it."""
    plain = host_root / name.lstrip("/")
    return plain if plain.exists() else host_root / f"proc/{pid}/root" / name.lstrip("/")
