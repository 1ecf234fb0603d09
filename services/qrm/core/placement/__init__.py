"""Placement chooses the CPUs of pools and pods: what pods wish for, what suits them, what fits."""
