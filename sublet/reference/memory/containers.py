"""Questions describe containers and NUMA nodes for Katalyst's memory rules."""

from collections.abc import Sequence

from services.advisor.core.memory.holders import Holder
from services.advisor.core.model.figures import Resident
from services.advisor.whatif.quantities import ByteCount, NumaId
from shared.contracts.pod import QosClass
from shared.errors import Refused
from shared.whatif.decisions import Question

MISSING_METRIC = "missing_metric"


class MemoryContainer(Question):
    """One container: what it asked for, what is measured of it, and where it may be."""

    pod: str | None = None
    qos: QosClass
    request_bytes: ByteCount | None = None
    rss_bytes: ByteCount | None = None
    cache_bytes: ByteCount | None = None
    shmem_bytes: ByteCount | None = None
    numa_binding: bool = False
    numa_exclusive: bool = False
    numas: list[NumaId] | None = None
    numa_bind_result: int | None = None
    reclaimable: bool = True

    def holder(self, *, enable_reclaim: bool) -> Holder:
        """The container as the rules see it."""
        return Holder(
            qos=self.qos,
            figures=Resident(self.rss_bytes, self.cache_bytes, self.shmem_bytes),
            request_bytes=self.request_bytes or 0,
            exclusive=self.numa_exclusive,
            numas=None if self.numas is None else tuple(self.numas),
            bound_numa=self.numa_bind_result,
            lends=enable_reclaim and self.reclaimable,
        )


def needed(numa: int, figures: Question, names: Sequence[str]) -> list[int]:
    """These figures of a NUMA node.

    Raises:
        Refused: `missing_metric`, one of them is null.
    """
    found: list[int] = []
    for name in names:
        figure = getattr(figures, name)
        if figure is None:
            raise Refused(f"memory of NUMA node {numa}: {name} is not known", reason=MISSING_METRIC)
        found.append(figure)
    return found
