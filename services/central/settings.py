"""Settings of central."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.lost_nodes.rules import Rules
from services.central.core.overcommit.config_documents import OvercommitLimits
from shared.contracts.cluster.heard import MOST_SHARDS
from shared.contracts.kube.overcommit import MOST_RATIO
from shared.core.quantities import Seconds
from shared.settings import Settings

NAME = "central"

OvercommitRatio = Annotated[float, Field(ge=1, le=MOST_RATIO, allow_inf_nan=False)]


class LeaseSettings(Settings):
    """The Lease by which several centrals elect a leader; periods as upstream (docs/facts/kubernetes.md#leases)."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-central"
    """Name of the Lease."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of the Lease."""
    lease_s: Annotated[float, Field(ge=1, le=3600)] = 15.0
    """Another central takes over if the Lease was not renewed for this time."""
    renew_s: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """The leader stops acting if it could not renew the Lease for this time; less than `lease_s`."""
    retry_s: Annotated[float, Field(gt=0, le=600)] = 2.0
    """Seconds between two attempts to acquire or renew the Lease."""

    @model_validator(mode="after")
    def _stops_before_others_begin(self) -> Self:
        if not self.retry_s < self.renew_s < self.lease_s:
            raise ValueError("want retry_s < renew_s < lease_s")
        return self


class LoginSettings(Settings):
    """How central answers the hub's questions about leaf logins."""

    url: Annotated[str, Field(pattern=r"^(nats|tls)://[^:@/\s]+:[^:@/\s]+@[^@\s]+(,(nats|tls)://[^,]+)*$")]
    """Addresses of the hub, separated by commas, with user and password of the account that receives the questions."""
    issuer: SecretStr
    """Secret from which central derives its signing key. Only the hub and central have it."""
    previous_issuer: SecretStr | None = None
    """The previous issuer, for hubs that have not restarted since `issuer` changed."""
    agents: str = "system:serviceaccount:sublet-system:sublet-node"
    """User name in the agents' tokens."""

    @property
    def issuers(self) -> tuple[str, ...]:
        """Return the issuers, the current one first."""
        known = (self.issuer, self.previous_issuer)
        return tuple(one.get_secret_value() for one in known if one is not None)


class WebhookSettings(Settings):
    """How the webhook answers the API server about pods, for Koordinator's ClusterColocationProfiles."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server comes from outside of the pod
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port to listen on; 0: any free port."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-webhook"
    """Name of the Service through which the API server connects; the certificate names it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of the Service and the Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-webhook-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    profiles: bool = True
    """Answers for pods; if false, only for Koordinator's ConfigMap."""
    node_status: bool = False
    """Answers for the status of over-committed Nodes."""
    gate: bool = False
    """Creates pods that request reclaimed resources behind a gate, which the extender's leader opens when there is
    room (`kubernetes.extender.gate`)."""
    configuration: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-pod-profiles"
    """Name of the webhook configurations that receive the certificate authority."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the host names of the Service inside the cluster."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


Percent = Annotated[int, Field(ge=0, le=100)]
Resource = Literal["cpu", "memory"]


class LoadSettings(Settings):
    """When a node is too loaded for another pod, and how the use of unmeasured pods is estimated."""

    percent: dict[Resource, Percent] = {"cpu": 65, "memory": 95}
    """Greatest share of a node's allocatable that all pods together may use with the new pod, in percent; 0: no
    bound."""
    prod_percent: dict[Resource, Percent] = {}
    """The same for pods of priority class prod, compared with the use of such pods; empty: `percent` applies to
    them."""
    aggregate: Literal["avg", "p50", "p90", "p95", "p99"] | None = None
    """Aggregate of a node's use over a window to compare; None: current use."""
    aggregate_window_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Which of the reported windows to use; None: the longest."""
    estimate_percent: dict[Resource, Annotated[int, Field(gt=0, le=1000)]] = {"cpu": 85, "memory": 70}
    """Estimated use of an unmeasured pod, in percent of the larger of its request and limit."""
    expire_s: Seconds = 180.0
    """A node with figures older than this accepts no pods, unless `expired_fits`."""
    expired_fits: bool = False
    """Treats a node with expired figures like a node without figures."""
    score_factor: dict[Resource, Annotated[int, Field(ge=0, le=100)]] = {"cpu": 1, "memory": 1}
    """Weight of each resource in a node's score."""
    dominant_factor: Annotated[int, Field(ge=0, le=100)] = 0
    """Additional weight of the scarcest resource."""


class ExtenderSettings(Settings):
    """How the scheduler extender answers; the defaults suit `python -m services.central.extender` as the chart runs
    it."""

    host: str = "0.0.0.0"  # noqa: S104 - the scheduler is another pod
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port to listen on; 0: any free port."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-extender"
    """Name of the Service through which schedulers connect, and of the Lease; the certificate names it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of the Service, the Lease and the Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-extender-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    said_max_age_s: Seconds = 30.0
    """How long the last message of a node counts. Afterwards the node's objects say what it offers and uses."""
    hold_s: Seconds = 20.0
    """How long a pod counts on every node that the extender accepted for it, unless the pod appears on one earlier."""
    wake_s: Annotated[float, Field(ge=1, le=600)] = 10.0
    """Seconds between two changes of the Node annotation that wakes the scheduler."""
    node_metrics: bool = True
    """Reads Koordinator's NodeMetrics for nodes that publish nothing on the bus."""
    load: LoadSettings = LoadSettings()
    """When a node is too loaded."""
    strategies: dict[str, Literal["least_allocated", "most_allocated"]] = {"sublet-pack": "most_allocated"}
    """Placement of reclaimed pods by scheduler profile: spread over the nodes (the default) or packed."""
    gate: Literal["none", "hold", "release"] = "none"
    """hold: the leader opens the gate for waiting pods when there is room. release: the leader opens it for all
    waiting pods; use it before switching the gate off. none: no gate."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the host names of the Service inside the cluster."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


class MetricsApiSettings(Settings):
    """How the custom and external metrics API answers the API server from nodes' figures."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server comes from outside of the pod
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port to listen on; 0: any free port."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-metrics-api"
    """Name of the Service to which the APIServices point, and of the Lease; the certificate names it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of the Service, the Lease and the Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-metrics-api-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    pages: bool = False
    """Scrapes pods with the annotation `metrics.sublet.io/page` for their own metrics every 15 seconds."""
    keep_s: Annotated[float, Field(ge=60, le=3600)] = 300.0
    """How long samples are kept; an aggregate covers all of them."""
    max_series: Annotated[int, Field(ge=1000, le=5_000_000)] = 500_000
    """Most series of all objects together; further series are refused until some expire."""
    max_samples: Annotated[int, Field(ge=10_000, le=100_000_000)] = 10_000_000
    """Most samples of all series together; each takes 16 bytes."""
    max_object_series: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most series of one pod or node, so that no object can displace the others."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the host names of the Service inside the cluster."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


class SloConfigMapSettings(Settings):
    """Koordinator's ConfigMap `slo-controller-config`, which can configure every node."""

    enabled: bool = False
    """Follows the ConfigMap: its values override the configuration of all nodes; config objects override its values."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "koordinator-system"
    """Namespace of the ConfigMap."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "slo-controller-config"
    """Name of the ConfigMap."""

    @property
    def path(self) -> str:
        """Return namespace and name."""
        return f"{self.namespace}/{self.name}"


class TideSettings(Settings):
    """How nodes move between services and batch work. While it is off, pods and pools are not watched."""

    enabled: bool = False
    """Follows TideNodePool objects."""
    pass_s: Annotated[float, Field(ge=1, le=300)] = 10.0
    """Seconds between passes without a change, and the least time between two nodes of a pool that move to the batch
    side."""
    settle_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    """How long changes are collected before a pass; each pass moves one node."""
    hold_s: Annotated[float, Field(ge=1, le=86400)] = 600.0
    """Least time that a node stays on its side."""
    retry_s: Annotated[float, Field(ge=1, le=604800)] = 3600.0
    """Time before central retries a node that it gave up because its pods did not leave or one became pending."""
    empty_limit_s: Annotated[float, Field(ge=10, le=86400)] = 600.0
    """A move to the batch side is given up if the services' pods have not left after this time."""
    give_back_limit_s: Annotated[float, Field(ge=10, le=86400)] = 120.0
    """A node that services need is returned to them after this time, even against the disruption budgets of batch
    work."""


class ClockBoundsSettings(Settings):
    """Replica bounds by the clock, for HorizontalPodAutoscalers with a schedule."""

    enabled: bool = False
    """Follows the schedules."""


class OvercommitSettings(Settings):
    """How far NodeOvercommitConfigs may over-commit nodes."""

    enabled: bool = False
    """Follows NodeOvercommitConfigs."""
    most_cpu_ratio: OvercommitRatio = 4.0
    """Greatest CPU ratio that a config may request; 1: CPU is not over-committed."""
    most_memory_ratio: OvercommitRatio = 1.0
    """Greatest memory ratio that a config may request. Memory cannot be taken back from a pod that uses it, so the
    default is 1: not over-committed."""
    unheard_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """How long a node that stops reporting what it can bear keeps its ratio."""
    by_label_alone: bool = False
    """Gives the config's ratio to nodes without an agent as well; if false, they get none."""

    @property
    def limits(self) -> OvercommitLimits:
        """Return the limits as the core takes them."""
        return OvercommitLimits({"cpu": self.most_cpu_ratio, "memory": self.most_memory_ratio}, self.by_label_alone)


class RecommendationSettings(Settings):
    """Requests that central recommends for workloads named by a ResourceRecommend."""

    enabled: bool = False
    """Follows ResourceRecommends."""
    min_history_s: Annotated[float, Field(ge=0, le=7 * 86_400)] = 86_400.0
    """How long a workload is observed before anything is recommended."""
    refresh_s: Annotated[float, Field(gt=0, le=86_400)] = 3600.0
    """Age after which a recommendation is replaced if it differs by more than 5 %; kills count at once."""
    checkpoint_s: Annotated[float, Field(gt=0, le=600)] = 300.0
    """Seconds between two checkpoints of a workload; a new leader loses at most this much history."""
    pass_s: Seconds = 30.0
    """Seconds between passes without a change of objects, because use changes all the time."""
    resizes_per_minute: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Most pods per minute that central resizes in place, in the whole cluster, for ResourceRecommends that ask for
    it."""

    @property
    def pace(self) -> Pace:
        """Return the pace of resizes."""
        return Pace(self.resizes_per_minute / 60)


class VerticalSettings(Settings):
    """Katalyst's vertical autoscalers, which resize pods in place to the recommendation."""

    enabled: bool = False
    """Follows KatalystVerticalPodAutoscaler objects."""
    stock: bool = False
    """Follows stock VerticalPodAutoscalers that ask for it as well; their kind must be installed."""


class ServiceProfileSettings(Settings):
    """Service profiles: descriptors of Deployments that ask for one, filled from nodes' figures."""

    enabled: bool = False
    """Creates descriptors, fills them, and names them on pods."""


class KubernetesSettings(Settings):
    """Central on substrate kubernetes."""

    lease: LeaseSettings = LeaseSettings()
    """The Lease by which several centrals elect a leader."""
    agent_labels: Annotated[str, Field(pattern=r"^[^=,\s]+=[^=,\s]+(,[^=,\s]+=[^=,\s]+)*$")] = (
        "app.kubernetes.io/name=sublet,app.kubernetes.io/component=node"
    )
    """Labels of the agents' pods; each node has one."""
    settle_s: Annotated[float, Field(ge=0, le=10)] = 0.2
    """How long changes are collected before a pass."""
    resync_s: Seconds = 30.0
    """Seconds between passes without a change, and the time after which orphans are removed."""
    logins: LoginSettings | None = None
    """How central answers the hub about leaf logins; None: the hub does not ask, because its configuration knows all
    leaves."""
    webhook: WebhookSettings | None = None
    """Settings of the webhook, a separate process; None: defaults."""
    extender: ExtenderSettings = ExtenderSettings()
    """Settings of the scheduler extender, a separate process."""
    metrics_api: MetricsApiSettings = MetricsApiSettings()
    """Settings of the metrics API, a separate process."""
    slo: SloConfigMapSettings = SloConfigMapSettings()
    """Koordinator's ConfigMap; off unless `enabled`."""
    tide: TideSettings = TideSettings()
    """Nodes that move between services and batch work; off unless `enabled`."""
    clock_bounds: ClockBoundsSettings = ClockBoundsSettings()
    """Replica bounds by the clock; off unless `enabled`."""
    vertical: VerticalSettings = VerticalSettings()
    """Vertical autoscalers; off unless `enabled`."""
    service_profiles: ServiceProfileSettings = ServiceProfileSettings()
    """Service profiles; off unless `enabled`."""
    overcommit: OvercommitSettings = OvercommitSettings()
    """Over-committed nodes; off unless `enabled`."""
    recommendation: RecommendationSettings = RecommendationSettings()
    """Requests recommended from the use of workloads; off unless `enabled`."""
    node_lease_s: Seconds = 40.0
    """A node is stale if its kubelet has not renewed its lease for this time (Kubernetes' default)."""

    @property
    def agent(self) -> dict[str, str]:
        """Return the agents' labels by name."""
        return dict(label.split("=") for label in self.agent_labels.split(","))


class PageSettings(Settings):
    """How the live page, a process of its own, is shown. It listens on loopback alone."""

    port: Annotated[int, Field(ge=0, le=65535)] = 9310
    """Port that is listened on; 0: any."""
    login: Literal["token", "none"] = "token"
    """token: the address with the login is in `page.json` of the state folder. none: whoever reaches loopback sees
    the page, as in a pod of its own, to which the API server lets nobody without the right to forward ports."""


class CentralSettings(Settings):
    """How central listens, and where the configuration of all nodes comes from."""

    rules: Rules = Rules()
    """When nodes count as late, and when all actions pause."""
    assess_s: Seconds = 1.0
    """Seconds between two assessments of the ledger."""
    probe_s: Seconds = 5.0
    """Seconds between two probes that central sends to itself over the bus."""
    shards: Annotated[int, Field(ge=1, le=MOST_SHARDS)] = 1
    """Into how many shards the hub divides the heartbeats, which all centrals then hear together; read at the start.
    1: each central hears all of them."""
    reconcile_s: Seconds = 30.0
    """Seconds between two checks of streams and bucket; central recreates them if a server lost them."""
    retry_s: Seconds = 1.0
    """Seconds between attempts while the bus is away."""
    stream_replicas: Literal[1, 3, 5] | None = None
    """Servers that store each stream and the bucket; None: one at first, later as an operator sets it."""
    config_file: Path | None = None
    """YAML file with the sections of all services; None: `config.yaml` in the state folder."""
    config_poll_s: Seconds = 0.5
    """Seconds between two checks of that file."""
    page: PageSettings = PageSettings()
    """How the live page is served, where it runs."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Used only on substrate kubernetes."""
