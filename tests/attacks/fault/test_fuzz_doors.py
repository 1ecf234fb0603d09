"""Every door of a pure kind, with documents as nobody means them: none throws, and what it lets through is in bounds.

FUZZ says how many documents in all (100 000 where nothing is said, 1 000 000 on demand), FUZZ_SEED which ones. A
failure names its seed and number; `KEPT` has those that once failed.
"""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from odd_documents import odd_document, odd_documents, odd_texts

from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.core.prediction.stored_margin import margins_of, margins_text
from services.advisor.policies.adaptive import AdaptiveSettings
from services.central.core.objects.companions import companion_of
from services.central.core.objects.nodes import agent_of, lease_of, node_of
from services.central.core.profiles.capacity_gate import GATE, with_gate
from services.central.core.profiles.profile import Profile, ProfileChanges
from services.central.core.profiles.profile_documents import profile_of
from services.central.core.profiles.profiled_pod import ProfilesInForce
from services.central.core.profiles.review import PodReview, mutate, read_review, validate
from services.central.core.rollout.config_documents import kcc_of, target_of
from services.central.core.scheduling.gate_release import release
from services.central.core.scheduling.waiting_pods import waiting_pod
from services.reporter.core.mid.peaks import UsageHistory, UsedAmounts
from services.reporter.core.mid.stored_past import past_of, past_text
from services.reporter.core.node_capacity import MAX_CPU_MILLIS, MAX_MEMORY_BYTES, node_capacity
from services.reporter.core.node_strategy import MOST_UNREAD, node_override
from shared.adapters.kube.watch import Collection, Mirror
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.cluster.profiles import ServiceProfiles
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.contracts.readiness import Health, Readiness
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import MAX_CPUS
from shared.core.cpus.normalization import MAX_RATIO, node_normalization_ratio
from shared.core.pods.cpu_binding import RESOURCE_SPEC, RESOURCE_STATUS, bound_cpus, cpu_binding
from shared.core.pods.kube_pod import pod_of
from shared.errors import Refused
from shared.ports import Received
from shared.wire import Newest

pytestmark = pytest.mark.timeout(3600)

COUNT, SEED = int(os.environ.get("FUZZ", "100000")), int(os.environ.get("FUZZ_SEED", "1"))
KEPT: Sequence[tuple[int, int]] = ()
"""Seed and number of documents that once went wrong."""
PIECES = 10
META = {"name": "web-1", "namespace": "team-a", "uid": "0f0e0d0c-0000-4000-8000-000000000001", "resourceVersion": "7"}
PODS: list[dict[str, Any]] = [
    {
        "metadata": {
            **META,
            "labels": {"koordinator.sh/qosClass": "BE", "app": "web"},
            "annotations": {
                "katalyst.kubewharf.io/qos_level": "reclaimed_cores",
                "katalyst.kubewharf.io/cpu_enhancement": '{"cpuset_pool": "batch"}',
                "katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}',
                "kubernetes.io/config.source": "file",
                "kubernetes.io/config.hash": "0123456789abcdef0123456789abcdef",
            },
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}],
            "deletionGracePeriodSeconds": 30,
        },
        "spec": {
            "nodeName": "n1",
            "priority": 10,
            "priorityClassName": "batch",
            "terminationGracePeriodSeconds": 30,
            "overhead": {"cpu": "10m", "memory": "16Mi"},
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1"}}},
                {"name": "d", "resources": {"requests": {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k"}}},
            ],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"memory": "1Mi"}}}],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "c", "containerID": "containerd://0123", "state": {"running": {}}}],
        },
    }
]
OBJECTS: dict[str, tuple[Callable[[Mapping[str, Any]], Any], dict[str, Any]]] = {
    "node": (
        node_of,
        {
            "metadata": {**META, "labels": {"pool": "a"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "48"}},
        },
    ),
    "companion": (
        companion_of,
        {
            "metadata": {**META, "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "qosLevel": "reclaimed_cores"}]},
            "status": {
                "conditions": [{"type": "AgentReady", "status": "True"}],
                "katalystCustomConfigList": [{"configType": {"resource": "r"}, "configName": "n", "hash": "h"}],
            },
        },
    ),
    "kcc": (kcc_of, {"metadata": META, "spec": {"targetType": {"group": "g", "version": "v1", "resource": "r"}}}),
    "target": (target_of, {"metadata": META, "spec": {"config": {"evictionPluginsConfig": {}}}}),
    "lease": (lease_of, {"metadata": META, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}),
    "agent": (agent_of, {**PODS[0]}),
    "profile": (
        profile_of,
        {
            "metadata": {**META, "annotations": {"config.koordinator.sh/skip-update-resources": ""}},
            "spec": {
                "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                "probability": "30%",
                "qosClass": "BE",
                "labels": {"a": "b"},
                "patch": {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}},
            },
        },
    ),
}
ENVELOPE = {"v": 1, "node": "n1", "boot_id": "0123456789abcdef", "seq": 1, "sent_at": "2026-01-01T00:00:00Z"}
MESSAGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "sample": (NodeSample, ENVELOPE),
    "advice": (PoolAdvice, ENVELOPE),
    "allocation": (Allocation, ENVELOPE),
    "health": (Health, {**ENVELOPE, "health": {"service": "qrm", "ok": True}}),
    "readiness": (Readiness, {**ENVELOPE, "ready": True, "services": [{"service": "qrm", "ok": False, "why": "w"}]}),
    "offer": (NodeOffer, {
        **ENVELOPE, "reclaimed": {"cpu_millis": 1},
        "pods": {"uids": ["a"], "namespaces": ["a"], "names": ["a"], "qos": ["shared_cores"], "prod": [True],
                 "cpu_millis": [1], "memory_bytes": [None]},
    }),
    "figures": (PodFigures, {
        **ENVELOPE, "measured_at": "2026-01-01T00:00:00Z", "period_s": 15, "node_series": {"a": 1.5},
        "pods": {"uids": ["a"], "namespaces": ["a"], "names": ["a"], "labels": {"b": ["c"]}, "series": {"d": [1]}},
        "containers": {"pods": [0], "names": ["a"], "series": {"e": [None]}},
    }),
    "profiles": (ServiceProfiles, {
        **ENVELOPE, "services": [{"namespace": "a", "name": "b", "targets": {"cpi": 1.5}, "pods": ["a"],
                                  "kept": {"poor": ["a"]}}],
    }),
}  # fmt: skip
LARGEST_POD_BYTES = 16 << 10
AMOUNTS = {"cpu": "8", "memory": "32611012Ki"}
NODES_OF_KOORDINATOR: list[dict[str, Any]] = [
    {
        "metadata": {
            **META,
            "annotations": {
                "node.koordinator.sh/reservation": f'{{"reservedCPUs": "{cpus}", "resources": {{"memory": "1Gi"}}}}',
                "node.koordinator.sh/raw-allocatable": '{"cpu": "7800m", "memory": "28629700Ki"}',
                "node.koordinator.sh/cpu-normalization-ratio": ratio,
            },
        },
        "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS},
    }
    for cpus, ratio in (("0-1", "1.2"), ("0-99999999999", "1e400"), ("[" * 5000, "nan"), ("\\ud800", "-1"))
]


NODES_WITH_A_STRATEGY: list[dict[str, Any]] = [
    {
        "metadata": {
            **META,
            "annotations": {"node.koordinator.sh/colocation-strategy": strategy},
            "labels": {
                "node.koordinator.sh/cpu-reclaim-ratio": ratio,
                "node.koordinator.sh/memory-reclaim-ratio": "0.65",
            },
        }
    }
    for strategy, ratio in (
        ('{"enable": false, "cpuReclaimThresholdPercent": 60, "degradeTimeMinutes": 15}', "0.6"),
        ('{"cpuCalculatePolicy": ["usage"], "memoryCalculatePolicy": {}, "enable": "no"}', "nan"),
        (f'{{"degradeTimeMinutes": {"9" * 4000}}}', "1e400"),
        ('{"a":' * 700, "\\ud800"),
    )
]


def share() -> int:
    """Documents of each piece."""
    return max(1, COUNT // PIECES)


def check_pod(document: Mapping[str, Any]) -> None:
    """A pod that the API server could give is a pod, within its bounds; any other is one or none."""
    pod = pod_of(document)
    if pod is not None:
        assert len(pod.model_dump_json()) <= LARGEST_POD_BYTES


def test_no_pod_document_gets_past_the_door_of_pods() -> None:
    for seed, number in KEPT:
        check_pod(odd_document(PODS, seed, number))
    for name, document in odd_documents(PODS, share() * 4, SEED):
        try:
            check_pod(document)
        except Exception as error:
            raise AssertionError(f"document {name}: {error!r}: {str(document)[:500]}") from error


def test_no_pod_document_gets_past_the_door_of_pods_that_wait_for_room() -> None:
    """It is read as one that waits, with a place in the queue, or as none, or refused by name."""
    asking = {"resources": {"requests": {RECLAIMED_CPU: "5", RECLAIMED_MEMORY: "1Mi"}}, "name": "main"}
    spec = {"containers": [asking], "schedulingGates": [{"name": GATE}], "priority": 5}
    waits = {"metadata": {**PODS[0]["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    for name, document in odd_documents([waits], share(), SEED):
        try:
            found = waiting_pod(document)
            if found is not None:
                release(GATE, [found, found], {RECLAIMED_CPU: 5})
                with_gate(dict(document))
        except Refused:
            continue
        except Exception as error:
            raise AssertionError(f"document {name}: {error!r}: {str(document)[:500]}") from error


def test_no_review_and_no_profile_gets_in_the_way_of_a_pod() -> None:
    """Whatever is sent is refused as no review, or answered; whatever a profile says, its pods are answered too."""
    request = {"uid": "u", "operation": "CREATE", "namespace": "a", "object": PODS[0], "oldObject": PODS[0]}
    patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}
    rules = ProfilesInForce([Profile("p", ProfileChanges(koord_qos="BE", patch=patch))], gated=True)
    for name, text in odd_texts([{"kind": "AdmissionReview", "request": request}], share(), SEED):
        try:
            review = read_review(text)
        except Refused:
            continue
        for answer in (mutate(review, rules, {}), validate(review)):
            assert answer.document["response"]["uid"] == review.uid, name
    spec = OBJECTS["profile"][1]
    for name, document in odd_documents([spec], share() // 3, SEED):
        try:
            profile = profile_of(document).profile
        except Refused:
            continue
        if profile is not None:
            review = PodReview("u", "CREATE", "a", PODS[0])
            answer = mutate(review, ProfilesInForce([replace(profile, selector=None)]), {})
            assert answer.document["response"]["allowed"], name


def test_no_annotation_of_a_pod_gets_past_the_door_of_its_cpus() -> None:
    """A tenant writes both: nothing throws, and no set goes beyond what a machine can have."""
    spec = {"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}
    status = {"cpuset": "0-3", "numaNodeResources": [{"node": 0, "resources": {"cpu": "4"}}]}
    for name, text in odd_texts([spec, status], share(), SEED):
        annotations = dict.fromkeys((RESOURCE_SPEC, RESOURCE_STATUS), text.decode(errors="replace"))
        binding, cpus = cpu_binding(annotations), bound_cpus(annotations)
        assert not (binding.refusal and binding.policy), name
        assert sum(map(len, (binding.refusal, *binding.unread))) < 1000, name
        assert len(cpus) <= MAX_CPUS, name


def test_no_annotation_of_a_node_gets_past_the_door_of_its_capacity() -> None:
    for name, document in odd_documents(NODES_OF_KOORDINATOR, share(), SEED):
        try:
            found = node_capacity(document)
        except Exception as error:
            raise AssertionError(f"document {name}: {error!r}: {str(document)[:500]}") from error
        if found is not None:
            assert 0 <= found.reserved_cpu_millis <= MAX_CPU_MILLIS
            assert 0 <= found.reserved_memory_bytes <= MAX_MEMORY_BYTES
            assert 1 <= found.cpu_normalization_ratio <= MAX_RATIO
            assert found.cpu_normalization_ratio == node_normalization_ratio(document)
            assert all(len(why) < 300 for why in found.unread)


def test_no_strategy_of_a_node_gets_past_the_door_of_its_bounds() -> None:
    for name, document in odd_documents(NODES_WITH_A_STRATEGY, share(), SEED):
        try:
            found = node_override(document)
        except Exception as error:
            raise AssertionError(f"document {name}: {error!r}: {str(document)[:500]}") from error
        assert all(0 <= value <= 100 for value in found.batch.values() if isinstance(value, int)), name
        assert found.degrade_after_s is None or 60 <= found.degrade_after_s <= 3600, name
        assert len(found.unread) <= MOST_UNREAD, name
        assert all(len(why) < 300 for why in found.unread), name


def test_no_text_of_a_life_before_gets_past_the_door_of_the_past() -> None:
    """Whatever lies in the file: it is none, or a past whose peaks can be asked for and that goes on."""
    history = UsageHistory()
    for minute in range(4):
        history.observe({"aa": UsedAmounts(100 * minute, 1 << 30)}, 60.0 * minute)
    good = json.loads(past_text(history, 1000.0))
    for name, text in odd_texts([good], share(), SEED):
        try:
            found, _ = past_of(text, 100.0, 1100.0)
            for model in list(found.models):
                found.peak(model, least_minutes=0)
            for minute in range(3):
                found.observe({model: UsedAmounts(1, 1) for model in found.models}, 100 + 60.0 * minute)
            past_text(found, 1200.0)
        except Exception as error:
            raise AssertionError(f"text {name}: {error!r}: {text[:500]!r}") from error


def test_no_text_of_a_life_before_gets_past_the_door_of_what_a_policy_learned() -> None:
    """Whatever lies in the file: it is nothing, or margins that go on, bound the need, and can be written again."""
    rules, margin = AdaptiveSettings().rules, LearnedMargin()
    for number in range(20):
        margin = margin.observe(5.0 + number % 3, 10.0 * number, 48, rules.learning)
    good = json.loads(margins_text({"share": margin}, 1000.0))
    for name, text in odd_texts([good], share(), SEED):
        try:
            found, _ = margins_of(text, 1100.0)
            for learned in found.values():
                for number in range(3):
                    learned = learned.observe(1.0 + number, 100 + 20.0 * number, 48, rules.learning)  # noqa: PLW2901
                assert 3.0 <= learned.forecast(48, rules).bound_cores < math.inf
                assert 3.0 <= learned.lines.bound_cores(48, rules.caution) < math.inf
                margins_text({"share": learned}, 1200.0)
        except Exception as error:
            raise AssertionError(f"text {name}: {error!r}: {text[:500]!r}") from error


class StoppedClock:
    """It is always the same moment."""

    def monotonic(self) -> float:
        return 100.0

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        """Nothing here waits."""


class NoServer:
    """Mirrors are only shown documents here."""


@pytest.mark.parametrize("kind", OBJECTS)
def test_no_object_ends_the_mirror_that_reads_it(kind: str) -> None:
    keep, good = OBJECTS[kind]
    collection = Collection(NoServer(), "/objects")  # type: ignore[arg-type]
    mirror: Mirror[Any] = Mirror(collection, keep, StoppedClock())
    mirror._objects = {}
    for name, document in odd_documents([{"type": "MODIFIED", "object": good}], share() // 3, SEED):
        try:
            mirror._take(document)
        except Exception as error:
            raise AssertionError(f"{kind} {name}: {error!r}: {str(document)[:500]}") from error


@pytest.mark.parametrize("kind", MESSAGES)
def test_no_message_ends_its_reader(kind: str) -> None:
    message, good = MESSAGES[kind]
    slot = Newest(message, StoppedClock(), service="fuzz", node="n1")
    for name, text in odd_texts([good], share(), SEED):
        try:
            slot.offer(Received(f"sublet.node.v1.{kind}.n1", text))
        except Exception as error:
            raise AssertionError(f"{kind} {name}: {error!r}: {text[:500]!r}") from error
    value = slot.value
    assert value is None or value.node == "n1"


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_a_message_says_after_its_door_can_be_said_again(kind: str) -> None:
    message, good = MESSAGES[kind]
    for name, text in odd_texts([good], share() // 5, SEED + 1):
        try:
            read = message.decode(text)
        except Refused:
            continue
        assert message.decode(read.encode()) == read, name
        json.loads(read.encode())
