"""The kind `pod_qos`: what the annotations of a pod say about its QoS."""

from dataclasses import asdict

from shared.contracts.pod import QosClass
from shared.core.pods.qos_annotations import BurstPolicy, ClusterDialect
from shared.core.pods.qos_annotations import pod_qos as read_pod_qos
from shared.whatif.decisions import Answer, Question, decision


class PodQosQuestion(Question):
    """A pod's annotations, and what this cluster and machine add to their reading."""

    annotations: dict[str, str]
    expanded_selectors: dict[QosClass, dict[str, str]] = {}
    expanded_enhancement_keys: dict[str, str] = {}
    machine_numas: list[int] | None = None


class PodQosAnswer(Answer):
    """What the annotations say; null, `[]` or 0 where they say nothing usable."""

    qos_level: QosClass | None
    enhancements: dict[str, str]
    numa_binding: bool
    numa_exclusive: bool
    cpuset_pool: str | None
    cpu_burst_policy: BurstPolicy | None
    cpu_burst_percent: float | None
    numa_ids: list[int]
    numa_number: int
    numa_bind_result: int | None
    suppression_tolerance_ratio: float | None
    rss_overuse_threshold_ratio: float | None
    oom_priority_requested: int | None
    oom_priority: int | None
    net_class_id: int | None
    errors: dict[str, str]


@decision("pod_qos", area="qos", asks=PodQosQuestion, answers=PodQosAnswer)
def pod_qos(question: PodQosQuestion) -> PodQosAnswer:
    """Everything that the annotations of a pod say."""
    cluster = ClusterDialect(question.expanded_selectors, question.expanded_enhancement_keys)
    return PodQosAnswer(**asdict(read_pod_qos(question.annotations, cluster, question.machine_numas)))
