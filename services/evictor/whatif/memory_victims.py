"""The kinds `memory_victims` and `rss_overuse`: who goes when memory is short, and who uses more than requested."""

from services.evictor.core.detectors.memory.combined import Action, MemoryActions
from services.evictor.core.detectors.memory.rss_overuse import ResidentPod, overusing
from services.evictor.core.detectors.memory.victims import RANKING, Key, MemoryUser, VictimOrder, in_order
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class MemoryPod(Question):
    """A pod with what it uses, of all memory and of each NUMA node's."""

    name: str
    namespace: str | None = None
    qos: QosClass
    priority: int
    usage_bytes: int | None = None
    numa_usage_bytes: dict[str, int | None] | None = None


class VictimsQuestion(Question):
    """The actions asked for, and the pods."""

    pods: list[MemoryPod]
    system_action: Action
    numa_actions: dict[str, Action]
    top_n: int = 1
    ranking: list[Key] | None = None
    numa_total_bytes: dict[str, int] | None = None
    victim_min_utilization_ratio: float = 0
    cooldown_s: float | None = None
    since_last_eviction_s: float | None = None


class VictimsAnswer(Answer):
    """Names, first to go first."""

    victims: list[str]


@decision("memory_victims", area="eviction_memory", asks=VictimsQuestion, answers=VictimsAnswer)
def memory_victims(question: VictimsQuestion) -> VictimsAnswer:
    """Who is evicted for given actions: NUMA nodes ascending, then the system; each pod once."""
    since, cooldown = question.since_last_eviction_s, question.cooldown_s
    if since is not None and cooldown is not None and since < cooldown:
        return VictimsAnswer(victims=[])
    ranking = RANKING if question.ranking is None else question.ranking
    order = in_order(
        [_user(pod) for pod in question.pods],
        VictimOrder(max(0, question.top_n), ranking, question.victim_min_utilization_ratio),
        MemoryActions(question.numa_actions, question.system_action),
        question.numa_total_bytes or {},
    )
    return VictimsAnswer(victims=[pod.of for pod in order])


def _user(pod: MemoryPod) -> MemoryUser[str]:
    by_numa = pod.numa_usage_bytes or {}
    return MemoryUser(pod.namespace or "", pod.name, pod.qos, pod.priority, pod.usage_bytes, by_numa, pod.name)


class RssContainer(Question):
    """One container; a null request is not declared."""

    request_bytes: int | None = None
    rss_bytes: int


class RssPod(Question):
    """A pod with its own threshold, if it has one."""

    name: str
    qos: QosClass
    labels: dict[str, str]
    rss_overuse_threshold_ratio: float | None = None
    containers: list[RssContainer]


class RssQuestion(Question):
    """The switch, the default threshold, which pods to check, and the pods."""

    enabled: bool
    default_threshold_ratio: float
    label_filter: dict[str, str]
    pods: list[RssPod]


class RssAnswer(Answer):
    """Names, ascending."""

    soft_victims: list[str]


@decision("rss_overuse", area="eviction_memory", asks=RssQuestion, answers=RssAnswer)
def rss_overuse(question: RssQuestion) -> RssAnswer:
    """Which pods use more resident memory than their requests allow?"""
    if not question.enabled:
        return RssAnswer(soft_victims=[])
    pods = (
        ResidentPod(
            pod.name,
            pod.qos,
            pod.labels,
            [container.rss_bytes for container in pod.containers],
            [container.request_bytes for container in pod.containers],
            pod.name,
            pod.rss_overuse_threshold_ratio,
        )
        for pod in question.pods
    )
    over = overusing(pods, question.default_threshold_ratio, question.label_filter)
    return RssAnswer(soft_victims=[pod.of for pod in over])
