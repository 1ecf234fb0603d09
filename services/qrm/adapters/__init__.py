"""Adapters of qrm touch the machine: the kernel's files, and those of the state folder."""
