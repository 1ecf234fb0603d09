"""Orders NUMA nodes by number, though maps name them by text."""


def numa_order(numa: str) -> tuple[int, str]:
    """Return a sort key: ids ascending as numbers, other ids last."""
    return (int(numa) if numa.removeprefix("-").isdigit() else 1 << 30, numa)
