"""A tenant who wants a better class, another's cgroup, or to stay for ever, on a real API server with the policies.

Whatever the API server lets through, the agent's reader takes for the class that admission has let through.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from class_claims import CLAIMS, PERMITTED, Claim
from kube_cluster import IN_FORCE_LIMIT_S, allowed, tried
from kube_rig.cluster import Cluster
from rig_parts import until

from shared.adapters.kube.client import Kube, KubeError
from shared.core.cgroups.kubelet_layout import CONFIG_HASH, CONFIG_MIRROR, CONFIG_PREFIX, KubeletLayout
from shared.core.pods.koord_qos import QOS_LABEL
from shared.core.pods.kube_pod import pod_of
from shared.core.pods.qos import QOS_LEVEL

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

TENANT, AT_A_TIME = "a-tenant", 16
FILE = "5" * 32
Document = dict[str, Any]
MADE = [claim for claim in CLAIMS if claim.clear]
BASES = [claim for claim in MADE if claim.name in ("- and -", "- and BE", "dedicated_cores and -", "- and SYSTEM")]
AS_BASE = pytest.mark.parametrize("base", BASES, ids=[claim.name for claim in BASES])
BY_LABEL = tuple(claim for claim in CLAIMS if not claim.annotations)


@pytest.fixture
async def kube(guarded: Cluster) -> AsyncIterator[Kube]:
    client = Kube(guarded.admin)
    yield client
    await client.close()


@pytest.fixture(scope="module")
def namespaces(guarded: Cluster, permitted: str) -> tuple[str, str]:
    """One that has no permission, and one that has."""
    for claim in (claim for claim in MADE if claim.qos in PERMITTED):
        document = claim.document("tried")
        document["metadata"]["namespace"] = permitted
        until(partial(allowed, guarded, document), IN_FORCE_LIMIT_S, "the labels' effect")
    return "default", permitted


def pods(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods{'/' if name else ''}{name}"


async def created(kube: Kube, namespace: str, document: Document, **query: object) -> Document | str:
    """The pod as the API server has it; else the words of its refusal."""
    try:
        return await kube.create(pods(namespace), document, manager=TENANT, **query)
    except KubeError as refusal:
        return str(refusal)


async def patched(kube: Kube, path: str, claim: Claim) -> Document | str:
    words = {"annotations": {QOS_LEVEL: None} | claim.annotations, "labels": {QOS_LABEL: None} | claim.labels}
    try:
        return await kube.merge(path, {"metadata": words}, manager=TENANT, dryRun="All")
    except KubeError as refusal:
        return str(refusal)


async def each(answers: list[Any]) -> list[Any]:
    """All of them, some at a time."""
    gate = asyncio.Semaphore(AT_A_TIME)

    async def one(answer: Any) -> Any:
        async with gate:
            return await answer

    return await asyncio.gather(*map(one, answers))


def class_of(document: Document) -> str:
    pod = pod_of(document)
    assert pod is not None
    return pod.qos


async def test_every_claim_is_let_through_as_the_class_that_agents_take_it_for_or_not_at_all(
    kube: Kube, namespaces: tuple[str, str]
) -> None:
    for namespace in namespaces:
        asked = [created(kube, namespace, claim.document("claims"), dryRun="All") for claim in CLAIMS]
        for claim, answer in zip(CLAIMS, await each(asked), strict=True):
            may = claim.clear and (claim.qos not in PERMITTED or namespace == namespaces[1])
            assert isinstance(answer, dict) == may, (namespace, claim.name, answer)
            assert isinstance(answer, str) or class_of(answer) == claim.qos, claim.name


@AS_BASE
async def test_no_word_that_is_written_onto_a_pod_makes_it_another_class(
    kube: Kube, namespaces: tuple[str, str], base: Claim
) -> None:
    document = base.document("kept")
    document["spec"]["schedulerName"] = "nobody"
    made = await created(kube, namespaces[1], document)
    assert isinstance(made, dict), made
    try:
        for door, claims in (("", CLAIMS), ("/status", BY_LABEL)):
            path = pods(namespaces[1], "kept") + door
            answers = await each([patched(kube, path, claim) for claim in claims])
            for claim, answer in zip(claims, answers, strict=True):
                assert isinstance(answer, dict) == (claim.clear and claim.qos == base.qos), (claim.name, answer)
                assert isinstance(answer, str) or class_of(answer) == base.qos, claim.name
        for door in ("/resize", "/ephemeralcontainers"):  # the API server leaves the words out, or refuses them
            path = pods(namespaces[1], "kept") + door
            answers = await each([patched(kube, path, claim) for claim in CLAIMS])
            assert {class_of(answer) for answer in answers if isinstance(answer, dict)} <= {base.qos}, door
            assert door == "/resize" or any(isinstance(answer, dict) for answer in answers)  # 1.30 has no resize
    finally:
        await kube.delete(pods(namespaces[1], "kept"), {"gracePeriodSeconds": 0})


FROM_KUBELET = {CONFIG_MIRROR: FILE, CONFIG_HASH: FILE, f"{CONFIG_PREFIX}source": "file"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "0f", "controller": True}
ODD = {"apiVersion": "v1", "kind": "x/y", "name": "a b/c", "uid": "0f", "controller": True}
RECLAIMED = next(claim for claim in MADE if claim.qos == "reclaimed_cores")


def reclaimed(name: str, **meta: object) -> Document:
    document = RECLAIMED.document(name)
    document["metadata"] = document["metadata"] | meta
    document["spec"]["schedulerName"] = "nobody"
    return document


async def test_what_only_kubelet_may_say_is_refused_in_a_new_pod_and_on_a_running_one(
    kube: Kube, namespaces: tuple[str, str]
) -> None:
    for key, text in FROM_KUBELET.items():
        for owners in ([], [NODE]):
            document = reclaimed("mirror", annotations=RECLAIMED.annotations | {key: text}, ownerReferences=owners)
            document["spec"]["nodeName"] = "n1"
            answer = await created(kube, namespaces[0], document, dryRun="All")
            assert isinstance(answer, str), key
            assert "are kubelet's, of static pods; leave them out" in answer
    assert isinstance(await created(kube, namespaces[0], reclaimed("plain")), dict)
    try:
        for key, text in FROM_KUBELET.items():
            for door in ("", "/status"):
                body = {"metadata": {"annotations": {key: text}}}
                with pytest.raises(KubeError, match=r"leave them out|may not"):
                    await kube.merge(pods(namespaces[0], "plain") + door, body, manager=TENANT, dryRun="All")
    finally:
        await kube.delete(pods(namespaces[0], "plain"), {"gracePeriodSeconds": 0})


async def test_an_owner_that_nobody_can_name_hides_no_pod(kube: Kube, namespaces: tuple[str, str]) -> None:
    made = await created(kube, namespaces[0], reclaimed("odd", ownerReferences=[ODD]), dryRun="All")
    assert isinstance(made, dict), "the API server takes such an owner"
    pod = pod_of(made)
    assert pod is not None
    assert (pod.qos, pod.owner, len(pod.unread)) == ("reclaimed_cores", None, 1)
    assert KubeletLayout("cgroupfs").pod_group(pod).endswith(pod.uid)


@pytest.fixture
def unguarded(guarded: Cluster) -> Iterator[Cluster]:
    """The API server while the policy does not bind."""
    binding = guarded.get("validatingadmissionpolicybinding", "sublet-pod-qos")
    guarded.kubectl("delete", "validatingadmissionpolicybinding", "sublet-pod-qos")
    until(lambda: "created" in tried(guarded, mirror("tried")), IN_FORCE_LIMIT_S, "an API server without the policy")
    yield guarded
    about = {"name": binding["metadata"]["name"], "labels": binding["metadata"].get("labels", {})}
    guarded.apply({**binding, "metadata": about})
    until(lambda: "leave them out" in tried(guarded, mirror("tried")), IN_FORCE_LIMIT_S, "the policy in force again")


def mirror(name: str) -> Document:
    """As kubelet makes one, but on another node than its owner."""
    meta = {"annotations": RECLAIMED.annotations | FROM_KUBELET, "ownerReferences": [NODE], "namespace": "default"}
    document = reclaimed(name, **meta)
    document["spec"]["nodeName"] = "n2"
    return document


async def test_without_admission_kubelets_words_lead_to_no_other_group_and_save_nobody(
    kube: Kube, unguarded: Cluster
) -> None:
    from services.evictor.core.arbiter.guards import never

    made = await created(kube, "default", mirror("tried"), dryRun="All")
    assert isinstance(made, dict), made
    pod = pod_of(made)
    assert pod is not None
    assert KubeletLayout("cgroupfs").pod_group(pod).endswith(pod.uid)
    assert never(pod, ()) is None
