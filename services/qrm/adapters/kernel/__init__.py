"""Kernel adapters read and write the node's cgroups: the one writer, the pods' groups, the machine, kubelet's pins."""
