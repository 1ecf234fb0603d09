"""`NODE_CHECKS` lists the checks of a node in the order in which they are reported."""

from sublet.doctor.finding import Checks
from sublet.doctor.node import machine, neighbours
from sublet.doctor.node.facts import HostFacts

NODE_CHECKS: Checks[HostFacts] = {
    "kernel": machine.kernel,
    "pressure": machine.pressure,
    "cgroups": machine.cgroups,
    "writable cgroups": machine.writable,
    "idle class": machine.idle_class,
    "kubelet's driver": neighbours.kubelet_driver,
    "pods' groups": neighbours.pods_groups,
    "pods' cpusets": machine.cpuset,
    "CPU manager": neighbours.cpu_manager,
    "SELinux": machine.selinux,
    "state folder": machine.state_folder,
    "memory": machine.memory,
    "other agents": neighbours.other_agents,
    "bus": neighbours.bus,
    "network policy": neighbours.network_policy,
}
