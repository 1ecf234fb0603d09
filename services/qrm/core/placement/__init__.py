"""Placement chooses the CPUs of pools and pods: what pods ask for, what suits them, what fits."""
