"""Detects pods whose resident memory exceeds their request: soft, one of them is evicted per round.

The rule is `rss_overuse` (docs/facts/katalyst-eviction.md#rss-overuse). Off by default, as in Katalyst.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.arbiter.soft_order import going_first
from services.evictor.core.detectors.memory.rss_overuse import JUDGED, ResidentPod, overusing
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.pods.qos_annotations import pod_qos

SCOPE = "mem.rss.container"
OWN_THRESHOLD = "rss_overuse_threshold"


class RssOveruseSettings(PluginSettings):
    """How much resident memory is too much."""

    enabled: bool = False
    rss_overuse_ratio: Annotated[float, Field(gt=0, le=100)] = 1.05
    """Resident memory above this times the request; a pod's `memory_enhancement.rss_overuse_threshold` overrides it."""
    label_filter: dict[str, str] = {}
    """Only pods with all these labels are checked."""


@dataclass(frozen=True, slots=True)
class RssOveruse(Pressure):
    """The pressure, and the pods above their threshold."""

    over: tuple[ResidentPod[Pod], ...] = field(default=())


def evaluate(_memory: None, view: View, settings: RssOveruseSettings) -> tuple[None, RssOveruse | Silence]:
    """Compare the resident memory of each pod with its request; pods without a figure are not judged."""
    judged = [reading for reading in view.pods if reading.pod.qos in JUDGED and not reading.pod.terminating]
    known = [pod for reading in judged if (pod := _resident(reading)) is not None]
    if not known:
        return None, "unknown"
    over = overusing(known, settings.rss_overuse_ratio, settings.label_filter)
    if not over:
        return None, "calm"
    worst = max(over, key=lambda pod: _excess(pod, settings))
    threshold = worst.threshold_bytes(settings.rss_overuse_ratio) or 0.0
    return None, RssOveruse(
        hard=False,
        scope=SCOPE,
        observed=worst.rss_bytes,
        threshold=threshold,
        why=Reason(
            rule="resident memory above ratio times request",
            numbers={"pod": worst.of.key, "rss_bytes": worst.rss_bytes, "threshold_bytes": threshold},
        ),
        over=tuple(over),
    )


def rank(_view: View, pressure: RssOveruse, settings: RssOveruseSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, low priority first, then by name."""
    by_uid = {over.of.uid: over for over in pressure.over}
    return tuple(
        Candidate(
            pod,
            Reason(
                rule="resident memory above ratio times request",
                numbers={
                    "rss_bytes": by_uid[pod.uid].rss_bytes,
                    "request_bytes": by_uid[pod.uid].request_bytes,
                    "threshold_bytes": by_uid[pod.uid].threshold_bytes(settings.rss_overuse_ratio),
                },
            ),
            by_uid[pod.uid].rss_bytes,
        )
        for pod in going_first([over.of for over in pressure.over])
    )


def _excess(pod: ResidentPod[Pod], settings: RssOveruseSettings) -> float:
    return pod.rss_bytes - (pod.threshold_bytes(settings.rss_overuse_ratio) or 0.0)


def _resident(reading: PodReading) -> ResidentPod[Pod] | None:
    """Return a pod's resident memory; None unless every container's is known, or if the pod's own threshold is
    unreadable."""
    pod, rss = reading.pod, {c.name: c.memory_rss_bytes for c in reading.containers}
    if not pod.containers or any(rss.get(c.name) is None for c in pod.containers):
        return None
    said = pod_qos(pod.annotations)
    own = said.rss_overuse_threshold_ratio
    # Its author wanted another threshold than the general one: that he misspelt it is no reason to apply that.
    if own is None and OWN_THRESHOLD in said.enhancements:
        return None
    return ResidentPod(
        pod.key,
        pod.qos,
        pod.labels,
        [rss[container.name] or 0 for container in pod.containers],
        [container.memory_request_bytes for container in pod.containers],
        pod,
        own,
    )


PLUGIN = Plugin(
    name="rss-overuse-eviction-plugin", settings=RssOveruseSettings, start=lambda: None, evaluate=evaluate, rank=rank
)
