"""Orders NUMA nodes by number, though maps name them by text."""


def numa_order(numa: str) -> tuple[int, str]:
    """The key to sort by: ids ascending as numbers, whatever is no number last."""
    return (int(numa) if numa.removeprefix("-").isdigit() else 1 << 30, numa)
