"""Checks of a node: kernel, control groups, disk space. Pure."""

import re

from sublet.doctor.finding import Finding, Unknown, ok, problem, unchecked, warning
from sublet.doctor.node.facts import HostFacts

OLDEST_KERNEL = (4, 19)
"""What kubeadm's own preflight asks for."""
OLDEST_KERNEL_V2 = (5, 8)
"""Below this Kubernetes calls cgroup v2 unsupported ("About cgroup v2", requirements)."""
NEEDED = {1: ("cpu", "cpuacct", "cpuset", "memory"), 2: ("cpu", "cpuset", "memory")}
STATE_BYTES = 64 << 20
"""Ledger, checkpoints and outbox, with room for a day in which nothing can be sent."""
AGENT_BYTES = 256 << 20
"""What the chart allows the agent and its leaf of the bus together."""
_MIB = 1 << 20


def kernel(facts: HostFacts) -> Finding:
    """Its version."""
    if isinstance(facts.kernel, Unknown):
        return unchecked(facts.kernel)
    found = re.match(r"(\d+)\.(\d+)", facts.kernel)
    if found is None:
        return unchecked(f"release {facts.kernel!r} is not a version")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST_KERNEL:
        return problem(f"Linux {facts.kernel} is older than 4.19", "upgrade the node's kernel to 5.15 or newer")
    if facts.cgroup_version == 2 and version < OLDEST_KERNEL_V2:
        return warning(f"Linux {facts.kernel}: cgroup v2 wants 5.8", "upgrade the node's kernel to 5.15 or newer")
    return ok(f"Linux {facts.kernel}")


def pressure(facts: HostFacts) -> Finding:
    """Pressure stall information, which wakes metrics between its periods."""
    if isinstance(facts.pressure, Unknown):
        return unchecked(facts.pressure)
    if facts.pressure:
        return ok("/proc/pressure is read")
    return warning(
        "no pressure stall information: memory pressure is seen a period later",
        "boot with psi=1 (a kernel with CONFIG_PSI)",
    )


def cgroups(facts: HostFacts) -> Finding:
    """Version and controllers."""
    version, controllers = facts.cgroup_version, facts.controllers
    if isinstance(version, Unknown):
        return problem(version.why, "mount cgroup v2 on /sys/fs/cgroup (systemd.unified_cgroup_hierarchy=1)")
    if isinstance(controllers, Unknown):
        return unchecked(controllers)
    missing = [name for name in NEEDED.get(version, ()) if name not in controllers]
    if missing:
        return problem(
            f"cgroup v{version} without {', '.join(missing)}",
            f"take cgroup_disable={missing[0]} from the kernel's command line, or boot with "
            "systemd.unified_cgroup_hierarchy=1",
        )
    return ok(f"cgroup v{version} with {', '.join(NEEDED[version])}")


def writable(facts: HostFacts) -> Finding:
    """Whether cgroups can be written."""
    # For anybody else every cgroup is read-only: that says nothing about the mount.
    if not facts.root:
        return unchecked("only root writes cgroups", "run it as root: sudo sublet doctor --node")
    if isinstance(facts.read_only, Unknown):
        return unchecked(facts.read_only)
    if facts.read_only:
        return problem(
            f"{facts.read_only[0]} is read-only",
            "mount it to write: hostPath /sys/fs/cgroup without readOnly, or --privileged",
        )
    return ok("the cgroup root can be written")


def cpuset(facts: HostFacts) -> Finding:
    """Whether kubelet hands the cpuset controller down to its pods."""
    if isinstance(facts.pod_controllers, Unknown):
        return unchecked(facts.pod_controllers)
    if "cpuset" in facts.pod_controllers:
        return ok("pods' groups have cpusets")
    return problem(
        "kubelet's top group has no cpuset controller",
        "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control, then restart kubelet",
    )


def idle_class(facts: HostFacts) -> Finding:
    """`cpu.idle`, by which a tenant that wakes wins at once."""
    if isinstance(facts.cpu_idle, Unknown):
        return unchecked(facts.cpu_idle)
    if facts.cpu_idle:
        return ok("cpu.idle is there")
    return warning(
        "no cpu.idle: reclaimed work has the lowest weight instead, and tenants wait longer for a CPU",
        "upgrade the node's kernel to 5.15 or newer",
    )


def selinux(facts: HostFacts) -> Finding:
    """Whether SELinux is enforced: under the type that containers have by default no pod writes cgroups."""
    if isinstance(facts.selinux_enforced, Unknown):
        return unchecked(facts.selinux_enforced)
    if facts.selinux_enforced:
        return warning(
            "SELinux is enforced: a pod of the default type cannot write cgroups, nor read the host's files",
            "set node.seLinuxOptions of the chart: --set node.seLinuxOptions.type=spc_t",
        )
    return ok("not enforced")


def state_folder(facts: HostFacts) -> Finding:
    """Room for the ledger, without which nothing is evicted; and whether a reboot leaves it there."""
    free, in_memory = facts.state_free_bytes, facts.state_in_memory
    if isinstance(free, Unknown):
        return unchecked(free)
    if isinstance(in_memory, Unknown):
        return unchecked(in_memory)
    said = f"{facts.state_dir} has {free // _MIB} MiB free"
    if free < STATE_BYTES:
        return problem(
            f"{said}, Sublet wants {STATE_BYTES // _MIB}",
            "make room, or choose another folder: node.stateDir of the chart, SUBLET_STATE_DIR",
        )
    if in_memory:
        return warning(
            f"{facts.state_dir} lies in memory: a reboot loses the history of evictions",
            "choose a folder on a disk: node.stateDir of the chart, SUBLET_STATE_DIR",
        )
    return ok(said)


def memory(facts: HostFacts) -> Finding:
    """Memory for the agent itself."""
    available = facts.memory_available_bytes
    if isinstance(available, Unknown):
        return unchecked(available)
    said = f"{available // _MIB} MiB available"
    if available < AGENT_BYTES:
        return warning(
            f"{said}, the agent may use {AGENT_BYTES // _MIB}",
            "end something on this node, or keep it out: node.nodeSelector of the chart",
        )
    return ok(said)
