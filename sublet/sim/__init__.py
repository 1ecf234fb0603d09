"""The simulator: a generated host tree in the kernel's formats, driven by a scenario in virtual time."""
