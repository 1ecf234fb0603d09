"""Cgroup values of a best-effort pod, from the batch resources of its containers.

A container without a limit makes its pod unlimited. The pods that Sublet runs get a limit of memory all the same
(`shared/core/pods/limits.py`).

Facts: docs/facts/koordinator-batch.md#cgroup-values-of-best-effort-pods.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY
from shared.core.cgroups.knobs import MIN_QUOTA_US, PERIOD_US, UNLIMITED, shares_of_millis
from shared.core.pods.koord_qos import KoordQos
from shared.whatif.decisions import Answer, Question, decision

Quantity = Annotated[int, Field(ge=-(1 << 60), le=1 << 60)]


class BatchContainer(Question):
    """A container's amounts by resource name: milli-cores and bytes."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}

    @property
    def is_known(self) -> bool:
        """Whether it names a batch resource at all."""
        return any(name in amounts for name in (BATCH_CPU, BATCH_MEMORY) for amounts in (self.requests, self.limits))


class BeCgroupQuestion(Question):
    """A pod, and whether its CPU may be limited by a quota."""

    koord_qos: KoordQos | None = None
    containers: dict[str, BatchContainer] | None = None
    cfs_quota_allowed: bool = True
    cpu_normalization_ratio: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None


class CgroupValues(Answer):
    """Values of one cgroup: -1 is unlimited, null leaves it alone."""

    cpu_shares: int | None = None
    cfs_quota_us: int | None = None
    memory_limit_bytes: int | None = None


class BeCgroupAnswer(Answer):
    """Values of the pod's own cgroup and of each container's."""

    pod: CgroupValues
    containers: dict[str, CgroupValues]


@decision("be_cgroup", area="koord_be_cgroup", asks=BeCgroupQuestion, answers=BeCgroupAnswer)
def be_cgroup(question: BeCgroupQuestion) -> BeCgroupAnswer:
    """Shares, quota and memory limit from batch resources."""
    containers = question.containers or {}
    if question.koord_qos != "BE" or not any(one.is_known for one in containers.values()):
        return BeCgroupAnswer(pod=CgroupValues(), containers={})
    return BeCgroupAnswer(
        pod=_values(question, containers.values()),
        containers={name: _values(question, [container]) for name, container in containers.items()},
    )


def _values(question: BeCgroupQuestion, containers: Iterable[BatchContainer]) -> CgroupValues:
    """Of these containers together."""
    together = list(containers)
    requested = sum(max(0, one.requests.get(BATCH_CPU, 0)) for one in together)
    cpu_millis = _limit((one.limits for one in together), BATCH_CPU)
    return CgroupValues(
        cpu_shares=shares_of_millis(requested),
        cfs_quota_us=_quota_us(cpu_millis, question.cpu_normalization_ratio)
        if question.cfs_quota_allowed
        else UNLIMITED,
        memory_limit_bytes=_limit((one.limits for one in together), BATCH_MEMORY),
    )


def _limit(limits: Iterable[Mapping[str, int]], name: str) -> int:
    """The sum; unlimited once one has no limit."""
    amounts = [one.get(name, 0) for one in limits]
    return sum(amounts) if all(amount > 0 for amount in amounts) else UNLIMITED


def _quota_us(cpu_millis: int, normalization_ratio: float | None) -> int:
    """A CPU faster than the one that was asked for gives the same in less time; a slower one gets no more."""
    if cpu_millis == UNLIMITED:
        return UNLIMITED
    quota_us = max(MIN_QUOTA_US, cpu_millis * PERIOD_US // 1000)
    ratio = normalization_ratio or 0.0
    return math.ceil(quota_us / ratio) if ratio > 1 else quota_us
