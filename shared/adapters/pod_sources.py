"""The substrate chooses the source of pods (docs/facts/safety-rules.md#the-same-services-everywhere)."""

from shared.adapters.files.pods import PodsFile
from shared.adapters.local.pods import LocalPods
from shared.ports import PodSource
from shared.settings import CommonSettings


def pod_source(common: CommonSettings) -> PodSource:
    """The local runtime's pods, or, in a cluster, the list that the reporter keeps for the services of its node."""
    return PodsFile(common.state_dir) if common.substrate == "kubernetes" else LocalPods(common.state_dir)
