"""Figures are what is measured of a container's CPU and memory, and of the node's memory."""

from dataclasses import dataclass

from services.advisor.core.model.wait import NOT_MEASURED, Wait


@dataclass(frozen=True, slots=True)
class Figures:
    """Measured CPU use of a container in cores, and its load averages; None if missing."""

    usage_cores: float | None = None
    load1: float | None = None
    load5: float | None = None
    wait: Wait = NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Resident:
    """Measured memory of a container; None if missing.

    Without a separate `shmem_bytes`, `cache_bytes` includes shared memory, as the kernel counts.
    """

    rss_bytes: int | None = None
    cache_bytes: int | None = None
    shmem_bytes: int | None = None

    @property
    def all(self) -> tuple[int | None, int | None, int | None]:
        """Every figure."""
        return self.rss_bytes, self.cache_bytes, self.shmem_bytes


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The node's memory, and what reclaimed pods use of it; None where it could not be read."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    reclaimed_used_bytes: int | None = None
    watermark_scale_factor: int | None = None
