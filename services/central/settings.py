"""Settings of central."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.lost_nodes.rules import Rules
from services.central.core.overcommit.config_documents import OvercommitLimits
from shared.contracts.kube.overcommit import MOST_RATIO
from shared.core.quantities import Seconds
from shared.settings import Settings

NAME = "central"

OvercommitRatio = Annotated[float, Field(ge=1, le=MOST_RATIO, allow_inf_nan=False)]


class LeaseSettings(Settings):
    """The Lease by which several centrals find out who acts; upstream's periods (docs/facts/kubernetes.md#leases)."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-central"
    """Name of the Lease."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of the Lease."""
    lease_s: Annotated[float, Field(ge=1, le=3600)] = 15.0
    """Others take over when it was not renewed for so long."""
    renew_s: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """The holder stops acting when it could not renew for so long; less than `lease_s`."""
    retry_s: Annotated[float, Field(gt=0, le=600)] = 2.0
    """Time between two tries to take or renew the Lease."""

    @model_validator(mode="after")
    def _stops_before_others_begin(self) -> Self:
        if not self.retry_s < self.renew_s < self.lease_s:
            raise ValueError("want retry_s < renew_s < lease_s")
        return self


class LoginSettings(Settings):
    """What central needs to answer the hub's questions about leaves that log in."""

    url: Annotated[str, Field(pattern=r"^(nats|tls)://[^:@/\s]+:[^:@/\s]+@[^@\s]+(,(nats|tls)://[^,]+)*$")]
    """The hub with user and password of the account that is asked, a list by commas."""
    issuer: SecretStr
    """Secret of which the key is made by which the hub knows central's answers; hub and central alone have it."""
    previous_issuer: SecretStr | None = None
    """The issuer before `issuer`, for hubs that have not started since it was changed."""
    agents: str = "system:serviceaccount:sublet-system:sublet-node"
    """User name of the agents' tokens."""

    @property
    def issuers(self) -> tuple[str, ...]:
        """The one of now first."""
        known = (self.issuer, self.previous_issuer)
        return tuple(one.get_secret_value() for one in known if one is not None)


class WebhookSettings(Settings):
    """How the webhook answers the API server about pods, for Koordinator's ClusterColocationProfiles."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server comes from outside of the pod
    """Address that is listened on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port that is listened on; 0: any."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-webhook"
    """Name of the Service by which the API server comes; the certificate is made for it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of Service and Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-webhook-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    profiles: bool = True
    """Whether pods are answered for; without, Koordinator's ConfigMap alone."""
    node_status: bool = False
    """Whether the status of over-committed Nodes is answered for."""
    gate: bool = False
    """Whether pods that ask for reclaimed resources are created behind a gate, which the extender's leader takes away
    as there is room (`kubernetes.extender.gate`)."""
    configuration: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-pod-profiles"
    """Name of the webhook configurations, which are told whose certificates to trust."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the Service, as the API server and others in the cluster call it."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


Percent = Annotated[int, Field(ge=0, le=100)]
Resource = Literal["cpu", "memory"]


class LoadSettings(Settings):
    """When a node is too hot for a further pod, and how what nobody has measured yet is estimated."""

    percent: dict[Resource, Percent] = {"cpu": 65, "memory": 95}
    """Most of what a node's pods may have, in percent, that all pods may use with the new one; 0: no bound."""
    prod_percent: dict[Resource, Percent] = {}
    """The same for pods of priority class prod, compared with what such pods use; empty: `percent` holds for them."""
    aggregate: Literal["avg", "p50", "p90", "p95", "p99"] | None = None
    """What of a node's use over a time counts instead of its use now; None: its use now."""
    aggregate_window_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Over which time, of those that nodes report; None: the longest."""
    estimate_percent: dict[Resource, Annotated[int, Field(gt=0, le=1000)]] = {"cpu": 85, "memory": 70}
    """What a pod uses of the larger of its request and limit, in percent, while nobody has measured it."""
    expire_s: Seconds = 180.0
    """Figures that are as old keep pods away, unless `expired_fits`."""
    expired_fits: bool = False
    """Whether a node with expired figures takes pods as one without any."""
    score_factor: dict[Resource, Annotated[int, Field(ge=0, le=100)]] = {"cpu": 1, "memory": 1}
    """What each resource counts in a node's score."""
    dominant_factor: Annotated[int, Field(ge=0, le=100)] = 0
    """What the scarcest resource counts once more."""


class ExtenderSettings(Settings):
    """How the scheduler extender answers, by default as `python -m services.central.extender` is asked by the chart."""

    host: str = "0.0.0.0"  # noqa: S104 - the scheduler is another pod
    """Address that is listened on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port that is listened on; 0: any."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-extender"
    """Name of the Service by which schedulers come, and of the Lease; the certificate is made for it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of Service, Lease and Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-extender-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    said_max_age_s: Seconds = 30.0
    """For so long the last message of a node counts; then its objects say what it offers and uses."""
    hold_s: Seconds = 20.0
    """For so long a pod counts on every node that it was let onto, unless it is seen on one before."""
    wake_s: Annotated[float, Field(ge=1, le=600)] = 10.0
    """Seconds between two changes of the annotation of a Node that wakes the scheduler."""
    node_metrics: bool = True
    """Whether Koordinator's NodeMetrics are read, for nodes that say nothing over the bus."""
    load: LoadSettings = LoadSettings()
    """When a node is too hot."""
    strategies: dict[str, Literal["least_allocated", "most_allocated"]] = {"sublet-pack": "most_allocated"}
    """How reclaimed pods of a scheduler profile are placed: spread over the nodes, which is the default, or packed."""
    gate: Literal["none", "hold", "release"] = "none"
    """Whether the leader lets pods go that wait behind the gate: as there is room (hold), or all of them, as before the
    gate is switched off (release)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the Service, as others in the cluster call it."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


class MetricsApiSettings(Settings):
    """How the custom and external metrics API answers the API server out of nodes' figures."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server comes from outside of the pod
    """Address that is listened on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """Port that is listened on; 0: any."""
    service: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-metrics-api"
    """Name of the Service that the APIServices lead to, and of the Lease; the certificate is made for it."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "sublet-system"
    """Namespace of Service, Lease and Secret."""
    secret: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "sublet-metrics-api-tls"  # noqa: S105
    """Name of the Secret in which all replicas share the certificate."""
    pages: bool = False
    """Whether pods with the annotation `metrics.sublet.io/page` are asked for metrics of their own every 15 seconds."""
    keep_s: Annotated[float, Field(ge=60, le=3600)] = 300.0
    """Samples are kept for so long; an aggregate is over all of them."""
    max_series: Annotated[int, Field(ge=1000, le=5_000_000)] = 500_000
    """Most series of all objects together; further ones are refused until some expire."""
    max_samples: Annotated[int, Field(ge=10_000, le=100_000_000)] = 10_000_000
    """Most samples of all series together, of 16 bytes each."""
    max_object_series: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most series of one pod or node, so that none takes the room of the others."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the Service, as the API server and others in the cluster call it."""
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


class SloConfigMapSettings(Settings):
    """Koordinator's ConfigMap `slo-controller-config`, which every node can be configured by."""

    enabled: bool = False
    """Whether it is followed: what it says goes over the configuration of all nodes, and below config objects."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "koordinator-system"
    """Namespace of the ConfigMap."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "slo-controller-config"
    """Name of the ConfigMap."""

    @property
    def path(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class TideSettings(Settings):
    """How nodes change between services and batch work; off unless `enabled`, for pods and pools are watched then."""

    enabled: bool = False
    """Whether TideNodePool objects are worked on."""
    pass_s: Annotated[float, Field(ge=1, le=300)] = 10.0
    """A pass also without any change, and least time between two nodes of a pool that go to the batch side."""
    settle_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    """How long changes are collected before a pass: one node changes sides in each."""
    hold_s: Annotated[float, Field(ge=1, le=86400)] = 600.0
    """A node that changed sides stays for so long."""
    retry_s: Annotated[float, Field(ge=1, le=604800)] = 3600.0
    """A node that was given up, for its pods did not leave or one began to wait, is not tried again for so long."""
    empty_limit_s: Annotated[float, Field(ge=10, le=86400)] = 600.0
    """A node that goes to the batch side is given up when services' pods have not left after so long."""
    give_back_limit_s: Annotated[float, Field(ge=10, le=86400)] = 120.0
    """A node that services need is theirs after so long, also against the disruption budgets of batch work."""


class ClockBoundsSettings(Settings):
    """Replica bounds by the clock, for HorizontalPodAutoscalers that carry a schedule."""

    enabled: bool = False
    """Whether schedules are followed."""


class OvercommitSettings(Settings):
    """How far NodeOvercommitConfigs may over-commit nodes."""

    enabled: bool = False
    """Whether they are followed."""
    most_cpu_ratio: OvercommitRatio = 4.0
    """A config that asks for more CPU than so often is refused; 1: CPU is not over-committed."""
    most_memory_ratio: OvercommitRatio = 1.0
    """The same of memory, which cannot be taken back from who has it: 1, not over-committed, unless you set it."""
    unheard_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """A node that does not say any more what it can bear keeps its ratio for so many seconds, and then has none."""
    by_label_alone: bool = False
    """Whether a node without an agent, which says nothing, gets the config's ratio; else it gets none."""

    @property
    def limits(self) -> OvercommitLimits:
        """As the rules have them."""
        return OvercommitLimits({"cpu": self.most_cpu_ratio, "memory": self.most_memory_ratio}, self.by_label_alone)


class RecommendationSettings(Settings):
    """What central recommends as requests of workloads that a ResourceRecommend names."""

    enabled: bool = False
    """Whether ResourceRecommends are followed."""
    min_history_s: Annotated[float, Field(ge=0, le=7 * 86_400)] = 86_400.0
    """So long a workload is watched before anything is recommended."""
    refresh_s: Annotated[float, Field(gt=0, le=86_400)] = 3600.0
    """Figures that are older are replaced where they differ by more than 5 %; kills count at once."""
    checkpoint_s: Annotated[float, Field(gt=0, le=600)] = 300.0
    """Between two checkpoints of a workload: the next leader has lost no more than this."""
    pass_s: Seconds = 30.0
    """A pass also without any change of objects: what was used changes all the time."""
    resizes_per_minute: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Most pods of the cluster that are resized in place in a minute, where their ResourceRecommend asks for it."""

    @property
    def pace(self) -> Pace:
        """Of resizes."""
        return Pace(self.resizes_per_minute / 60)


class VerticalSettings(Settings):
    """Vertical autoscalers of Katalyst, which give pods in place what is recommended."""

    enabled: bool = False
    """Whether KatalystVerticalPodAutoscaler objects are worked on."""
    stock: bool = False
    """Whether stock VerticalPodAutoscalers that ask for it are, too; their kind must be installed."""


class ServiceProfileSettings(Settings):
    """Service profiles: descriptors of Deployments that ask for one, filled from what nodes tell."""

    enabled: bool = False
    """Whether descriptors are made, filled and named on pods."""


class KubernetesSettings(Settings):
    """Central on substrate kubernetes."""

    lease: LeaseSettings = LeaseSettings()
    """The Lease by which several centrals find out who acts."""
    agent_labels: Annotated[str, Field(pattern=r"^[^=,\s]+=[^=,\s]+(,[^=,\s]+=[^=,\s]+)*$")] = (
        "app.kubernetes.io/name=sublet,app.kubernetes.io/component=node"
    )
    """Labels of the agents' pods, of which a node has one."""
    settle_s: Annotated[float, Field(ge=0, le=10)] = 0.2
    """How long changes are collected before a pass; what comes meanwhile is one pass."""
    resync_s: Seconds = 30.0
    """A pass also without any change, and the time after which orphans are cleared."""
    logins: LoginSettings | None = None
    """How central answers the hub about leaves that log in; None: the hub does not ask, as where its configuration
    knows all leaves."""
    webhook: WebhookSettings | None = None
    """How the webhook, a process of its own, answers about pods that are created; None: as by default."""
    extender: ExtenderSettings = ExtenderSettings()
    """How the scheduler extender, a process of its own, answers schedulers."""
    metrics_api: MetricsApiSettings = MetricsApiSettings()
    """How the metrics API, a process of its own, answers about nodes' figures."""
    slo: SloConfigMapSettings = SloConfigMapSettings()
    """Koordinator's ConfigMap; off unless `enabled`."""
    tide: TideSettings = TideSettings()
    """Nodes that change between services and batch work; off unless `enabled`."""
    clock_bounds: ClockBoundsSettings = ClockBoundsSettings()
    """Replica bounds by the clock; off unless `enabled`."""
    vertical: VerticalSettings = VerticalSettings()
    """Vertical autoscalers; off unless `enabled`."""
    service_profiles: ServiceProfileSettings = ServiceProfileSettings()
    """Service profiles; off unless `enabled`."""
    overcommit: OvercommitSettings = OvercommitSettings()
    """Over-committed nodes; off unless `enabled`."""
    recommendation: RecommendationSettings = RecommendationSettings()
    """Requests that are made of what workloads use; off unless `enabled`."""
    node_lease_s: Seconds = 40.0
    """A node whose kubelet has not renewed its lease for so long is stale (Kubernetes' own default)."""

    @property
    def agent(self) -> dict[str, str]:
        """The agents' labels by name."""
        return dict(label.split("=") for label in self.agent_labels.split(","))


class CentralSettings(Settings):
    """How central listens, and where the configuration of all nodes comes from."""

    rules: Rules = Rules()
    """When nodes count as late and when everything pauses."""
    assess_s: Seconds = 1.0
    """Seconds between two assessments of the ledger."""
    probe_s: Seconds = 5.0
    """Seconds between two messages of central to itself."""
    reconcile_s: Seconds = 30.0
    """Seconds between two looks at streams and bucket, so that a server that lost them gets them back."""
    retry_s: Seconds = 1.0
    """Seconds until the next try while the bus is away."""
    stream_replicas: Literal[1, 3, 5] | None = None
    """Servers that keep each stream and the bucket; None: one at first, and as an operator has set them since."""
    config_file: Path | None = None
    """YAML file with the sections of all services; None: `config.yaml` in the state folder."""
    config_poll_s: Seconds = 2.0
    """Seconds between two looks at that file."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Used on substrate kubernetes alone."""
