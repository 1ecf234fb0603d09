"""The checks of a node, in the order in which they are told."""

from sublet.doctor import node_machine, node_neighbours
from sublet.doctor.finding import Checks
from sublet.doctor.node_facts import NodeFacts

NODE_CHECKS: Checks[NodeFacts] = {
    "kernel": node_machine.kernel,
    "pressure": node_machine.pressure,
    "cgroups": node_machine.cgroups,
    "writable cgroups": node_machine.writable,
    "idle class": node_machine.idle_class,
    "kubelet's driver": node_neighbours.kubelet_driver,
    "pods' groups": node_neighbours.pods_groups,
    "pods' cpusets": node_machine.cpuset,
    "CPU manager": node_neighbours.cpu_manager,
    "SELinux": node_machine.selinux,
    "state folder": node_machine.state_folder,
    "memory": node_machine.memory,
    "other agents": node_neighbours.other_agents,
    "bus": node_neighbours.bus,
    "network policy": node_neighbours.network_policy,
}
