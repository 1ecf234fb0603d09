"""What a cluster's recording consists of: objects of the API server, messages of nodes, and what was decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.clock_bounds.autoscaler import AUTOSCALERS
from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS
from services.central.core.service_profiles.descriptor import DESCRIPTORS
from services.central.core.tide.pool import POOLS
from services.central.core.vertical.stock_vpa import STOCK_VPAS
from services.central.core.vertical.vpa_object import KATALYST_VPAS
from shared.contracts.cluster.decision import Decision
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.offer import NodeOffer
from shared.core.api_kind import CNRS, NODE_METRICS, NODES, PODS

KINDS = (
    NODES, CNRS, NODE_METRICS, USAGE_CHECKPOINTS, OVERCOMMIT_CONFIGS, POOLS, DEPLOYMENTS, RESOURCE_RECOMMENDS, PODS,
    AUTOSCALERS, DESCRIPTORS, KATALYST_VPAS, STOCK_VPAS,
)  # fmt: skip
"""Objects that are recorded, in the order of the first frames: what pods are judged by stands before them."""
KIND_OF = {kind.kind: kind for kind in KINDS}
MESSAGES = {one.kind: one for one in (NodeOffer, PodFigures, Decision)}
Heard = NodeOffer | PodFigures | Decision


@dataclass(frozen=True, slots=True)
class RecordedObject:
    """An object of the API server as it is from now on; None: it is gone."""

    kind: str
    uid: str
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ClusterFrame:
    """One thing that happened; `at_s` counts from the start of the recording."""

    at_s: float
    now: datetime
    what: RecordedObject | Heard
