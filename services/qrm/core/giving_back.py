"""A pod that is no reclaimed pod any more gets back what kubelet would have written for it."""

from collections.abc import Iterator

from shared.core.knobs import UNLIMITED, Knob, Write
from shared.core.pod_limits import GroupLimits


def giving_back(group: str, own: GroupLimits, hard_bytes: int | None) -> Iterator[Write]:
    """The settings of one group, in an order that the kernel takes.

    `hard_bytes` is its memory limit as the kernel has it, None where there is none to set: lifted, never lowered.
    """
    yield Write(group, Knob.CPU_IDLE, 0)  # first: while it is 1, shares are refused
    yield Write(group, Knob.CPU_SHARES, own.cpu_shares)
    lifted = UNLIMITED if own.memory_bytes is None else own.memory_bytes
    if hard_bytes is not None and hard_bytes != UNLIMITED and (lifted == UNLIMITED or lifted > hard_bytes):
        yield Write(group, Knob.MEMORY_MAX, lifted)
    yield Write(group, Knob.MEMORY_HIGH, UNLIMITED)
