"""Detects pods that use too much of the root file system: soft, the largest use first.

Facts: docs/facts/katalyst-eviction.md#root-file-system-overuse. Off by default, as in Katalyst, and without thresholds.
The plugin reads `extra`: `rootfs_capacity_bytes` of the node, `rootfs_used_bytes` of containers. No source in
`services/metrics/sources` measures the latter, because it would have to walk the files of each container. With the
built-in sources the plugin therefore returns "unknown" for every sample and evicts no pod, until a custom source
provides that figure.
"""

from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.evictor.core.detectors.rootfs.overuse import overusing, threshold_bytes
from services.evictor.core.detectors.rootfs.pressure import MAX_AGE_S, RootfsLine, RootfsUser, check_one
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import extra_sum
from shared.contracts.envelope import Bytes, Reason
from shared.contracts.pod import Pod, QosClass
from shared.core.quantities import Ratio

SCOPE = "rootfs.used.pod"
CAPACITY, USED = "rootfs_capacity_bytes", "rootfs_used_bytes"


class RootfsOveruseSettings(PluginSettings):
    """Thresholds by class, and the pods to which they apply. No threshold is below 20 GiB or a tenth of the
    capacity."""

    enabled: bool = False
    """Evaluates the plugin. No built-in source measures what containers write: without one that does, the plugin
    evicts no pod."""
    max_victims: Annotated[int, Field(ge=1)] = 1
    """Most candidates at a time, the largest use first."""
    supported_qos: tuple[QosClass, ...] = ("shared_cores",)
    """QoS classes whose pods are checked."""
    shared_threshold_bytes: Bytes | None = None
    """A shared pod that uses more is a candidate; less than 20 GiB counts as 20 GiB. None: the ratio applies."""
    shared_threshold_ratio: Ratio | None = None
    """The same as a share of the capacity, if no bytes are set; less than a tenth counts as a tenth. If None as
    well, no shared pod is a candidate."""
    reclaimed_threshold_bytes: Bytes | None = None
    """A reclaimed pod that uses more is a candidate; less than 20 GiB counts as 20 GiB. None: the ratio applies."""
    reclaimed_threshold_ratio: Ratio | None = None
    """The same as a share of the capacity, if no bytes are set; less than a tenth counts as a tenth. If None as
    well, no reclaimed pod is a candidate."""
    shared_namespaces: tuple[str, ...] = ("default",)
    """Namespaces whose shared pods are checked."""

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        check_one("shared_threshold", self.shared_threshold_bytes, self.shared_threshold_ratio)
        check_one("reclaimed_threshold", self.reclaimed_threshold_bytes, self.reclaimed_threshold_ratio)
        return self

    def thresholds(self, capacity_bytes: int) -> dict[QosClass, float | None]:
        """Return the thresholds by class, in bytes."""
        shared = RootfsLine(self.shared_threshold_bytes, self.shared_threshold_ratio)
        reclaimed = RootfsLine(self.reclaimed_threshold_bytes, self.reclaimed_threshold_ratio)
        return {
            "shared_cores": threshold_bytes(shared, capacity_bytes),
            "reclaimed_cores": threshold_bytes(reclaimed, capacity_bytes),
        }


@dataclass(frozen=True, slots=True)
class RootfsOveruse(Pressure):
    """The pressure, and the pods above their threshold, the largest use first."""

    over: tuple[tuple[Pod, int, float], ...] = field(default=())


def evaluate(_memory: None, view: View, settings: RootfsOveruseSettings) -> tuple[None, RootfsOveruse | Silence]:
    """Compare what each pod has written with the threshold of its class."""
    capacity, ages = view.sample.node_reading.rootfs_capacity_bytes, view.sample.figure_ages_s
    pods = [
        RootfsUser(r.pod.namespace, r.pod.name, r.pod.qos, int(used), r.pod)
        for r in view.pods
        if not r.pod.terminating and (used := extra_sum(r, USED)) is not None
    ]
    if not capacity or not pods or max(ages.get(CAPACITY, 0.0), ages.get(USED, 0.0)) > MAX_AGE_S:
        return None, "unknown"
    thresholds = settings.thresholds(int(capacity))
    over = overusing(pods, thresholds, settings.supported_qos, settings.shared_namespaces)[: settings.max_victims]
    if not over:
        return None, "calm"
    worst, threshold = over[0], thresholds[over[0].qos] or 0.0
    return None, RootfsOveruse(
        hard=False,
        scope=SCOPE,
        observed=worst.used,
        threshold=threshold,
        why=Reason(
            rule="use of the root file system above the threshold of the class",
            numbers={"pod": worst.of.key, "used_bytes": worst.used, "threshold_bytes": threshold},
        ),
        over=tuple((pod.of, pod.used, thresholds[pod.qos] or 0.0) for pod in over),
    )


def rank(_view: View, pressure: RootfsOveruse, _settings: RootfsOveruseSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, the largest use first."""
    order = sorted(pressure.over, key=lambda item: item[0].qos != "reclaimed_cores")
    return tuple(
        Candidate(
            pod,
            Reason(
                rule=f"rootfs overuse threshold met, used: {used}, threshold: {threshold:.0f}",
                numbers={"used_bytes": used, "threshold_bytes": threshold},
            ),
            used,
        )
        for pod, used, threshold in order
    )


PLUGIN = Plugin(
    name="rootfs-overuse-eviction-plugin",
    settings=RootfsOveruseSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
)
