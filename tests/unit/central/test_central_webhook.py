"""Pods through a real HTTPS server: what the API server sends, with the authority that its configuration was told."""

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from prometheus_client import REGISTRY

from services.central.adapters.https.server import HttpsServer
from services.central.adapters.https.serving_secret import SECRETS, ServingNames, ServingSecret
from services.central.adapters.webhook.authorities import CONFIGURATIONS, WebhookAuthorities
from services.central.core.profiles.cluster_objects import NAMESPACES, PRIORITY_CLASSES
from services.central.core.profiles.profile_documents import PROFILES
from services.central.core.profiles.review import MAX_REVIEW_BYTES
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.profiles.answers import ProfileAnswers
from services.central.profiles.controller import ProfileController, StatusWriter
from services.central.profiles.mirrors import ProfileMirrors
from services.central.serving.serving import Serving
from services.central.settings import LeaseSettings, WebhookSettings
from shared.adapters.clock import SystemClock
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

SETTINGS = WebhookSettings(host="127.0.0.1", port=0)
BATCH = {"metadata": {"name": "batch"}, "spec": {"selector": {"matchLabels": {"kind": "batch"}}, "qosClass": "BE",
         "priorityClassName": "koord-batch", "namespaceSelector": {"matchLabels": {"colocated": "true"}}}}  # fmt: skip
POD = {"metadata": {"generateName": "job-", "labels": {"kind": "batch"}},
       "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}  # fmt: skip
REVIEW = {"kind": "AdmissionReview", "request": {"uid": "r", "operation": "CREATE", "object": POD}}
Json = dict[str, Any]


def cluster() -> MemoryObjects:
    api = MemoryObjects(SystemClock())
    api.put(NAMESPACES, {"metadata": {"name": "team-a", "labels": {"colocated": "true"}}})
    api.put(PRIORITY_CLASSES, {"metadata": {"name": "koord-batch"}, "value": 5500, "preemptionPolicy": "Never"})
    api.put(PROFILES, BATCH)
    for kind in CONFIGURATIONS:
        hooks = [{"name": "pods.sublet.io", "clientConfig": {"service": {"name": "sublet-webhook"}}}]
        api.put(kind, {"metadata": {"name": SETTINGS.configuration}, "webhooks": hooks})
    return api


@dataclass
class Central:
    """One of them, on a port of its own."""

    api: MemoryObjects
    leader: Leader
    mirrors: ProfileMirrors
    server: HttpsServer
    writer: StatusWriter
    controller: ProfileController
    serving: Serving

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """As the API server does, which trusts nobody but whom it was told of."""
        bundles = [
            hook["clientConfig"]["caBundle"]
            for kind in CONFIGURATIONS
            for hook in self.api.documents[kind, "", SETTINGS.configuration]["webhooks"]
        ]
        assert len(set(bundles)) == 1
        trusted = ssl.create_default_context(cadata=base64.b64decode(bundles[0]).decode())
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"https://127.0.0.1:{self.server.port}{path}",
                data=io.BytesIO(body),
                ssl=trusted,
                server_hostname=SETTINGS.names[0],
            ) as response,
        ):
            return response.status, await response.read()

    async def asked(self, path: str, pod: Json, **request: Any) -> Json:
        """The response to a review of a pod."""
        asked = {"uid": "r-1", "operation": "CREATE", "namespace": "team-a", "object": pod, **request}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()
        status, answer = await self.post(path, body)
        assert status == 200, answer
        found: Json = json.loads(answer)["response"]
        return found


def secret(objects: LeaderObjects) -> ServingSecret:
    names = ServingNames(SETTINGS.secret, SETTINGS.namespace, SETTINGS.names)
    return ServingSecret(objects, SystemClock(), names, WebhookAuthorities(objects, SETTINGS.configuration))


@asynccontextmanager
async def central(api: MemoryObjects, name: str = "a", *, leads: bool = True) -> AsyncIterator[Central]:
    """Its mirrors run; what it does over time is done when the test says so."""
    clock, changed = api.clock, asyncio.Event()
    leader = Leader(api, clock, name, LeaseSettings())
    mirrors, objects = ProfileMirrors(api, changed), LeaderObjects(api, leader)
    server = HttpsServer(ProfileAnswers(mirrors, api, clock).routes, host=SETTINGS.host, port=0)
    writer = StatusWriter(mirrors, objects, leader, clock, changed)
    serving = Serving(server, secret(objects), clock, missing=lambda: mirrors.failure, leading=lambda: leader.leading)
    controller = ProfileController(mirrors, serving, writer)
    leading = asyncio.Event()

    async def work() -> None:
        leading.set()
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors.every]
    if leads:
        tasks.append(asyncio.create_task(leader.run(work)))
        await leading.wait()
    await asyncio.sleep(0)
    try:
        yield Central(api, leader, mirrors, server, writer, controller, serving)
    finally:
        await controller.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def counted(kind: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("sublet_central_pod_reviews_total", {"kind": kind, "outcome": outcome}) or 0.0


async def test_a_pod_is_answered_over_https_with_its_patch() -> None:
    before = counted("mutate", "changed")
    async with central(cluster()) as one:
        assert await one.serving.serve()
        assert one.controller.failure == ""
        response = await one.asked("/mutate", POD)
        assert (response["uid"], response["allowed"], response["patchType"]) == ("r-1", True, "JSONPatch")
        patch = {row["path"]: row.get("value") for row in json.loads(base64.b64decode(response["patch"]))}
        assert patch["/metadata/labels/koordinator.sh~1qosClass"] == "BE"
        assert patch["/spec/priority"] == 5500
        other = await one.asked("/mutate", {"metadata": {"labels": {"kind": "web"}}, "spec": POD["spec"]})
        assert other == {"uid": "r-1", "allowed": True}
    assert counted("mutate", "changed") == before + 1


async def test_a_pod_is_refused_over_https_with_words() -> None:
    async with central(cluster()) as one:
        assert await one.serving.serve()
        pod = {"metadata": {"labels": {"koordinator.sh/qosClass": "LSR"}}, "spec": {"containers": []}}
        response = await one.asked("/validate", pod)
        assert not response["allowed"]
        assert "want koord-prod" in response["status"]["message"]
        assert (await one.asked("/validate", POD))["allowed"]


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 400), (b"[]", 400), (b"{" * 5000, 400), (b" " * (MAX_REVIEW_BYTES + 1), 413)]
)
async def test_what_is_no_review_is_refused_and_the_server_goes_on(body: bytes, status: int) -> None:
    async with central(cluster()) as one:
        assert await one.serving.serve()
        assert (await one.post("/mutate", body))[0] == status
        assert (await one.asked("/mutate", POD))["allowed"]
        assert (await one.post("/other", b""))[0] == 404


async def test_nobody_is_answered_without_tls() -> None:
    async with central(cluster()) as one, aiohttp.ClientSession() as session:
        assert await one.serving.serve()
        with pytest.raises(aiohttp.ClientError):
            await session.post(f"http://127.0.0.1:{one.server.port}/mutate", data=b"{}")


async def test_a_follower_answers_with_the_leaders_certificate_and_writes_nothing() -> None:
    api = cluster()
    async with central(api, "follower", leads=False) as follower:
        assert not await follower.serving.serve()
        assert "the leader makes it" in follower.controller.failure
        async with central(api, "leader") as leader:
            assert await leader.serving.serve()
            api.writes.clear()
            assert await follower.serving.serve()
            await follower.writer.write()
            assert api.writes == []
            assert (await follower.asked("/mutate", POD))["patch"] == (await leader.asked("/mutate", POD))["patch"]


async def test_nobody_listens_before_profiles_are_known() -> None:
    api = cluster()
    api.online = False
    async with central(api, leads=False) as one:
        assert not await one.serving.serve()
        assert "not listed yet" in one.controller.failure
        assert one.server.port == 0


async def test_a_certificate_is_made_once_and_the_next_one_is_shown_without_a_new_server() -> None:
    api = cluster()
    async with central(api) as one:
        assert await one.serving.serve()
        port, writes = one.server.port, list(api.writes)
        assert await one.serving.serve()
        assert api.writes == writes
        api.drop(SECRETS, SETTINGS.secret, SETTINGS.namespace)  # as an operator who wants another one
        assert await one.serving.serve()
        assert one.server.port == port
        assert (await one.asked("/mutate", POD))["allowed"]


async def test_the_api_server_is_told_whom_to_trust_before_the_certificate_is_there() -> None:
    api = cluster()
    async with central(api) as one:
        assert await one.serving.serve()
        written = [name for _, name, _ in api.writes if name != "leases"]
        told = [kind.plural for kind in CONFIGURATIONS]
        assert written == [*told, SECRETS.plural]
        secret = api.documents[SECRETS, SETTINGS.namespace, SETTINGS.secret]
        assert secret["type"] == "kubernetes.io/tls"


async def test_who_still_shows_the_certificate_of_a_deleted_secret_is_trusted_until_the_next_look() -> None:
    api = cluster()
    async with central(api, "leader") as leader, central(api, "follower", leads=False) as follower:
        assert await leader.serving.serve()
        assert await follower.serving.serve()
        api.drop(SECRETS, SETTINGS.secret, SETTINGS.namespace)
        assert await leader.serving.serve()
        assert (await follower.asked("/mutate", POD))["allowed"]
        assert await follower.serving.serve()
        assert await leader.serving.serve()
        hooks = api.documents[CONFIGURATIONS[0], "", SETTINGS.configuration]["webhooks"]
        secret = api.documents[SECRETS, SETTINGS.namespace, SETTINGS.secret]
        assert hooks[0]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
        assert (await follower.asked("/mutate", POD))["allowed"]


async def test_configurations_that_are_switched_off_hold_nobody_up() -> None:
    api = cluster()
    for kind in CONFIGURATIONS:
        api.drop(kind, SETTINGS.configuration)
    async with central(api) as one:
        assert await one.serving.serve()


async def test_a_namespace_that_the_mirror_does_not_have_yet_is_asked_for() -> None:
    api = cluster()
    async with central(api) as one:
        assert await one.serving.serve()
        api.mirrors.clear()  # what comes now, no mirror is told
        api.put(NAMESPACES, {"metadata": {"name": "new", "labels": {"colocated": "true"}}})
        assert "patch" in await one.asked("/mutate", POD, namespace="new")
        assert "patch" not in await one.asked("/mutate", POD, namespace="gone")
        api.online = False
        before = counted("mutate", "namespace_unknown")
        assert "patch" not in await one.asked("/mutate", POD, namespace="other")
        assert counted("mutate", "namespace_unknown") == before + 1
        assert "patch" in await one.asked("/mutate", POD)


async def test_labels_that_nobody_knows_are_not_taken_for_absent_ones() -> None:
    api = cluster()
    absent = {"matchExpressions": [{"key": "colocated", "operator": "DoesNotExist"}]}
    spec: Json = {"selector": {"matchLabels": {"kind": "batch"}}, "qosClass": "BE", "namespaceSelector": absent}
    api.put(PROFILES, BATCH | {"spec": spec})
    async with central(api) as one:
        assert await one.serving.serve()
        api.online = False
        before = counted("mutate", "namespace_unknown")
        assert "patch" not in await one.asked("/mutate", POD, namespace="other")
        assert counted("mutate", "namespace_unknown") == before + 1


async def test_a_changed_profile_is_in_force_for_the_next_pod() -> None:
    api = cluster()
    async with central(api) as one:
        assert await one.serving.serve()
        api.put(PROFILES, BATCH | {"spec": {"selector": {"matchLabels": {"kind batch": "x"}}, "qosClass": "BE"}})
        assert "patch" not in await one.asked("/mutate", POD)
        api.put(PROFILES, BATCH | {"spec": {"qosClass": "BE"}})
        assert "patch" in await one.asked("/mutate", POD)


async def test_a_profile_says_in_its_status_whether_it_works() -> None:
    api = cluster()
    api.put(PROFILES, {"metadata": {"name": "odd"}, "spec": {"selector": {"matchLabels": {"a b": "1"}}}})
    api.put(PROFILES, {"metadata": {"name": "poor"}, "spec": {"priorityClassName": "gone"}})
    async with central(api) as one:
        await one.writer.write()
        found = {d["metadata"]["name"]: d["status"]["conditions"][0] for d in api.of(PROFILES)}
        assert (found["batch"]["status"], found["batch"]["reason"]) == ("True", "Read")
        assert (found["odd"]["status"], found["odd"]["reason"]) == ("False", "Unreadable")
        assert "spec.selector" in found["odd"]["message"]
        assert "matches no pod" in found["odd"]["message"]
        assert found["poor"]["reason"] == "PriorityClassMissing"
        assert found["batch"]["observedGeneration"] == 1
        api.writes.clear()
        await one.writer.write()
        assert api.writes == []
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "gone"}, "value": 5000})
        await one.writer.write()
        assert [name for *_, name in api.writes] == ["poor"]


async def test_while_it_runs_pods_are_answered_and_statuses_written() -> None:
    api = cluster()
    async with central(api) as one:
        running = asyncio.create_task(one.controller.run())
        while not one.server.port or "status" not in api.documents[PROFILES, "", "batch"]:
            await asyncio.sleep(0)
            assert not running.done()
        assert "patch" in await one.asked("/mutate", POD)
        odd = {"metadata": {"name": "odd"}, "spec": {"selector": {"matchLabels": {"a b": "1"}}}}
        api.put(PROFILES, odd)
        while "status" not in api.documents[PROFILES, "", "odd"]:  # by the change alone, not after the next period
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_pod_that_passes_because_of_a_slip_of_ours_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with central(cluster()) as one:
        assert await one.serving.serve()
        before = counted("mutate", "failed")
        with monkeypatch.context() as patched:
            patched.setattr(ProfileMirrors, "readable", property(lambda _self: 1 / 0))
            assert (await one.post("/mutate", json.dumps(REVIEW).encode()))[0] == 500
        assert counted("mutate", "failed") == before + 1
        assert (await one.asked("/mutate", POD))["allowed"]


async def test_a_port_that_is_taken_is_said_with_its_number() -> None:
    async with central(cluster()) as one:
        assert await one.serving.serve()
        held = await secret(LeaderObjects(one.api, one.leader)).current(writes=False)
        assert held is not None
        second = HttpsServer(ProfileAnswers(one.mirrors, one.api, one.api.clock).routes, host="127.0.0.1",
                               port=one.server.port)  # fmt: skip
        with pytest.raises(Unavailable, match=f"port {one.server.port}.*choose another port"):
            await second.use(*held)
        with pytest.raises(Unavailable, match="certificate cannot be used"):
            await second.use(b"junk", b"junk")
