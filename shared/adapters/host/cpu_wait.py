"""`waited_s` tells how long a thread has waited for a CPU, as the kernel counts it (CONFIG_SCHED_INFO)."""

from pathlib import Path

OWN = Path("/proc/thread-self/schedstat")
"""The calling thread's nanoseconds on a CPU, nanoseconds of waiting for one, and turns (Documentation/scheduler)."""

LONGEST = 64
"""Bytes that are read: three numbers of 64 bits have 20 digits at most."""


def waited_s(record: Path = OWN) -> float:
    """Return the seconds that the calling thread has been ready to run without a CPU since it began.

    0 where the kernel does not say: time then counts as spent, the careful value. What a hypervisor takes away is not
    in it.
    """
    try:
        with record.open("rb") as file:
            return int(file.read(LONGEST).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
