"""The checkpoint of a workload's use, from which the next leader continues.

Weights are written in ten-thousandths of the heaviest bucket, which is precise enough for a percentile.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.central.core.recommendation.histogram import BucketScheme, UsageHistogram
from services.central.core.recommendation.oom import OomKill
from services.central.core.recommendation.usage.samples import (
    CPU_CORES,
    MEMORY_BYTES,
    ContainerUsage,
    OpenHour,
    Usages,
)
from shared.core.pydantic_words import first_fault
from shared.errors import Refused

STEPS = 10_000
MAX_CONTAINERS = 32
MAX_HOURS = 200
"""Pods whose peak of this hour is kept, those with most memory; of others this hour is lost with its leader."""
MAX_KILLS = 100
"""Of one workload; the newest are kept."""

When = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Bytes = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=253)]


class _Part(BaseModel):
    """Of a document that this program wrote and others may have written to: numbers may come as either kind."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class StoredHistogram(_Part):
    """Weights by bucket in parts of the heaviest."""

    at_s: When = 0.0
    heaviest: Weight = 0.0
    parts: Annotated[dict[Annotated[str, Field(pattern=r"^[0-9]{1,3}$")], Annotated[int, Field(ge=0, le=STEPS)]],
                     Field(max_length=400)] = {}  # fmt: skip


class StoredContainer(_Part):
    """One container."""

    cpu: StoredHistogram = StoredHistogram()
    memory: StoredHistogram = StoredHistogram()
    cpu_samples: Annotated[int, Field(ge=0, le=1 << 53)] = 0
    first_s: When | None = None
    last_s: When | None = None
    hours: Annotated[
        dict[Text, tuple[Annotated[int, Field(ge=0, le=1 << 40)], Bytes]], Field(max_length=MAX_HOURS)
    ] = {}


class StoredKill(_Part):
    """A kill for want of memory."""

    pod: Text
    container: Text
    memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)]
    finished_s: When


class StoredUsage(_Part):
    """All that is kept of a workload."""

    containers: Annotated[dict[Text, StoredContainer], Field(max_length=MAX_CONTAINERS)] = {}
    kills: Annotated[list[StoredKill], Field(max_length=MAX_KILLS)] = []


def stored(usages: Usages, kills: Iterable[OomKill]) -> str:
    """The text of a checkpoint, JSON; `kills` begin with the newest."""
    kept = [
        StoredKill(pod=one.pod, container=one.container, memory_bytes=one.memory_bytes, finished_s=one.finished_s)
        for one in list(kills)[:MAX_KILLS]
    ]
    containers = {name: _stored(usage) for name, usage in sorted(usages.items())[:MAX_CONTAINERS]}
    return StoredUsage(containers=containers, kills=kept).model_dump_json()


def restored(text: str, namespace: str) -> tuple[dict[str, ContainerUsage], list[OomKill]]:
    """Return use by container, and kills.

    Raises:
        Refused: `checkpoint`, it could not have been written like this.
    """
    try:
        found = StoredUsage.model_validate_json(text)
    except ValidationError as error:
        raise Refused(f"checkpoint: {first_fault(error, whole='usage')}", reason="checkpoint") from error
    kills = [OomKill(namespace, one.pod, one.container, one.memory_bytes, one.finished_s) for one in found.kills]
    return {name: _restored(container) for name, container in found.containers.items()}, kills


def _stored(usage: ContainerUsage) -> StoredContainer:
    largest = sorted(usage.hours.items(), key=lambda item: (-item[1].peak_bytes, item[0]))[:MAX_HOURS]
    return StoredContainer(
        cpu=_histogram(usage.cpu),
        memory=_histogram(usage.memory),
        cpu_samples=usage.cpu_samples,
        first_s=usage.first_s,
        last_s=usage.last_s,
        hours={uid: (of.hour, of.peak_bytes) for uid, of in largest},
    )


def _restored(container: StoredContainer) -> ContainerUsage:
    usage = ContainerUsage()
    usage.cpu, usage.memory = _weights(container.cpu, CPU_CORES), _weights(container.memory, MEMORY_BYTES)
    usage.cpu_samples = container.cpu_samples
    usage.first_s, usage.last_s = container.first_s, container.last_s
    usage.hours = {uid: OpenHour(hour, peak_bytes) for uid, (hour, peak_bytes) in container.hours.items()}
    return usage


def _histogram(of: UsageHistogram) -> StoredHistogram:
    heaviest = max(of.weights.values(), default=0.0)
    if heaviest <= 0:
        return StoredHistogram(at_s=of.at_s)
    parts = {str(bucket): round(weight / heaviest * STEPS) for bucket, weight in sorted(of.weights.items())}
    return StoredHistogram(at_s=of.at_s, heaviest=heaviest, parts={bucket: n for bucket, n in parts.items() if n})


def _weights(of: StoredHistogram, scheme: BucketScheme) -> UsageHistogram:
    last = scheme.buckets - 1
    weights = {min(int(bucket), last): of.heaviest * parts / STEPS for bucket, parts in of.parts.items()}
    return UsageHistogram(scheme, of.at_s, weights)
