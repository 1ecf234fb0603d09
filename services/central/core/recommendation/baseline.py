"""Baseline pods of a service: its oldest share, which nodes treat separately
(docs/facts/service-profiles.md#baseline)."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ServicePod:
    """A pod of a service; pods are in the order of their creation, then of their names."""

    created_s: float
    name: str
    active: bool = True


@dataclass(frozen=True, slots=True)
class Baseline:
    """The pods of the baseline, and the youngest of them where a share of the pods is meant."""

    pods: tuple[str, ...]
    """Names, ascending."""
    sentinel: ServicePod | None = None


def baseline_of(percent: int | None, pods: Iterable[ServicePod]) -> Baseline:
    """Which pods are baseline; without a percent none is."""
    if percent is None or percent <= 0:
        return Baseline(())
    every = sorted(pods)
    if percent >= 100:
        return Baseline(tuple(sorted(pod.name for pod in every)))
    active = [pod for pod in every if pod.active]
    if not active:
        return Baseline(())
    sentinel = active[(len(active) - 1) * percent // 100]
    return Baseline(tuple(sorted(pod.name for pod in every if pod <= sentinel)), sentinel)
