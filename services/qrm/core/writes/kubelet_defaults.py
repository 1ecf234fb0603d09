"""Kubelet's defaults are restored to pods that are being started, and to all pods when Sublet is uninstalled."""

from collections.abc import Iterator

from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import MIN_SHARES, UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout
from shared.core.pods.limits import GroupLimits, limits_of


def restore_group(group: str, own: GroupLimits, hard_bytes: int | None) -> Iterator[Write]:
    """Return the settings of one group, in an order that the kernel accepts.

    `hard_bytes` is its memory limit as the kernel has it, None if there is none to set: lifted, never lowered.
    """
    yield from restore_weight(group, own.cpu_shares)
    lifted = UNLIMITED if own.memory_bytes is None else own.memory_bytes
    if hard_bytes is not None and hard_bytes != UNLIMITED and (lifted == UNLIMITED or lifted > hard_bytes):
        yield Write(group, Knob.MEMORY_MAX, lifted)
    # Kubelet writes no `memory.high` unless its feature MemoryQoS is on, and by default it is off.
    yield Write(group, Knob.MEMORY_HIGH, UNLIMITED)


def restore_weight(group: str, cpu_shares: int) -> Iterator[Write]:
    """The weight of one group, in an order that the kernel takes."""
    yield Write(group, Knob.CPU_IDLE, 0)  # first: while it is 1, shares are refused
    yield Write(group, Knob.CPU_SHARES, cpu_shares)


def default_limits(pod: Pod, layout: Layout) -> dict[str, GroupLimits]:
    """Of each group of a reclaimed or mid pod, the pod's own first, what kubelet wrote.

    To kubelet a best-effort pod asked for nothing; of any other it knows what the pod's amounts say.
    """
    known, best_effort = limits_of(pod, layout, unsaid_bytes=0), layout.reclaimed_group(())
    if best_effort is None or not layout.pod_group(pod).startswith(f"{best_effort}/"):
        return known
    return dict.fromkeys(known, GroupLimits(MIN_SHARES, None))
