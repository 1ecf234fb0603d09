"""Calculators choose CPUs for pools and pods: balanced, packed, distributed, or by topology."""
