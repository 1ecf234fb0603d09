"""Host adapters read and write the kernel's files: cgroups and their processes, /proc and /sys, the topology."""
