"""The what-if kind `cache_reaper` chooses whose page cache is dropped."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.memory.cache_reaper import (
    MIN_CACHE_RATIO,
    Cached,
    Shortage,
    critical_watermark_bytes,
    pods_to_reap,
)
from services.advisor.core.model.machine import KATALYST_CRITICAL_BYTES
from services.advisor.whatif.quantities import ByteCount, Ratio, ScaleFactor
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class CachedContainer(Question):
    """One container."""

    pod: str
    qos: QosClass
    cache_bytes: ByteCount | None = None


class CacheReaperQuestion(Question):
    """Memory of the node or of one NUMA node, and who caches files in it."""

    total_bytes: ByteCount
    free_bytes: ByteCount
    numas: Annotated[int, Field(ge=1, le=8192)]
    watermark_scale_factor: ScaleFactor
    min_critical_watermark_bytes: ByteCount = KATALYST_CRITICAL_BYTES
    min_cache_ratio: Ratio = MIN_CACHE_RATIO
    containers: list[CachedContainer]


class CacheReaperAnswer(Answer):
    """Pods whose page cache is dropped, largest first."""

    drop_cache: list[str]


@decision("cache_reaper", area="memory", asks=CacheReaperQuestion, answers=CacheReaperAnswer)
def cache_reaper(question: CacheReaperQuestion) -> CacheReaperAnswer:
    """Return whose page cache to drop under pressure."""
    least = question.min_critical_watermark_bytes * question.numas
    critical = critical_watermark_bytes(question.total_bytes, question.watermark_scale_factor, least)
    shortage = Shortage(question.total_bytes, question.free_bytes, critical)
    cached = [Cached(container.pod, container.qos, container.cache_bytes) for container in question.containers]
    return CacheReaperAnswer(drop_cache=pods_to_reap(shortage, cached, question.min_cache_ratio))
