"""Offloading gives idle memory of pods back to the machine: a loop, and the groups that it asks the kernel for."""
