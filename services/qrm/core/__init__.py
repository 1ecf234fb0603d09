"""The pure decisions of qrm: which CPUs, in which order they are written, what else is set, what is said about it."""
