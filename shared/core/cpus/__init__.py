"""A topology describes the machine's CPUs, a CPU set names some of them."""
