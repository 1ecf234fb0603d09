"""Time of an answer about a pod that is created, and about the status of an over-committed node, as the API server
waits for it: HTTPS on one kept connection.

    python -m bench.cluster.webhook

Over objects in memory, for the mirrors hold them in memory too: 50 profiles, of which three match, and 500 namespaces.
"""

import asyncio
import gc
import json
import socket
import ssl
import sys
import time
from asyncio.subprocess import PIPE
from datetime import UTC, datetime
from http.client import HTTPConnection
from resource import RUSAGE_SELF, getrusage
from typing import Any

from bench.rigs.report import Row, print_rows, progress
from services.central.adapters.https.certificate import renewed
from services.central.adapters.https.server import HttpsServer
from services.central.core.profiles.cluster_objects import NAMESPACES, PRIORITY_CLASSES
from services.central.core.profiles.profile_documents import PROFILES
from services.central.overcommit.answers import NodeStatusAnswers
from services.central.profiles.answers import ProfileAnswers
from services.central.profiles.mirrors import ProfileMirrors
from shared.adapters.clock import SystemClock
from shared.fakes.memory_objects import MemoryObjects
from sublet.demo.load import percentile

ROUNDS, WARM_UP = 2000, 100
PROFILE_COUNT, NAMESPACE_COUNT = 50, 500
NAME = "sublet-webhook.sublet-system.svc"
TARGET = "p99 10 ms"

Document = dict[str, Any]


def cluster() -> MemoryObjects:
    """Objects as a cluster of many teams has them."""
    api = MemoryObjects(SystemClock())
    api.put(PRIORITY_CLASSES, {"metadata": {"name": "koord-batch"}, "value": 5500})
    for number in range(NAMESPACE_COUNT):
        api.put(NAMESPACES, {"metadata": {"name": f"team-{number}", "labels": {"colocated": "true"}}})
    for number in range(PROFILE_COUNT):
        spec: Document = {
            "namespaceSelector": {"matchLabels": {"colocated": "true"}},
            "selector": {"matchLabels": {"kind": f"kind-{number // 3}"}},
            "qosClass": "BE", "priorityClassName": "koord-batch", "labels": {f"from-{number}": "1"},
            "patch": {"metadata": {"annotations": {f"from-{number}": "1"}}},
        }  # fmt: skip
        api.put(PROFILES, {"metadata": {"name": f"profile-{number}"}, "spec": spec})
    return api


def review(kind: str) -> bytes:
    """A question about a pod of three containers."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    environment = [{"name": f"NAME_{number}", "value": "x" * 40} for number in range(30)]
    containers = [{"name": f"c{n}", "image": "i", "env": environment, "resources": resources} for n in range(3)]
    pod = {"metadata": {"generateName": "job-", "labels": {"kind": kind}}, "spec": {"containers": containers}}
    request = {"uid": "u", "operation": "CREATE", "namespace": "team-7", "object": pod}
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def node_review(sent_cpu: str) -> bytes:
    """A question about a status that kubelet writes: 50 images, and twice the object, as an update has it."""
    images = [{"names": [f"registry.example/{'x' * 60}/{n}@sha256:{'0' * 64}"], "sizeBytes": n} for n in range(50)]
    ratio = {"katalyst.kubewharf.io/cpu_overcommit_ratio": "1.5"}
    amounts = {"cpu": "64", "memory": "263755668Ki", "pods": "110"}

    def node(cpu: str) -> Document:
        status = {"allocatable": {**amounts, "cpu": cpu}, "capacity": {**amounts, "cpu": cpu}, "images": images}
        return {"metadata": {"name": "n", "annotations": ratio}, "status": status}

    who = {"uid": "u", "operation": "UPDATE", "subResource": "status", "userInfo": {"username": "system:node:n"}}
    request = {**who, "object": node(sent_cpu), "oldObject": node("96")}
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def ask(port: int, authorities: str, path: str) -> None:
    """Be the API server: send the body of standard input on one kept connection, and write the times, in seconds."""
    body, spent_s = sys.stdin.buffer.read(), []
    connection, trusted = HTTPConnection("127.0.0.1", port), ssl.create_default_context(cadata=authorities)
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as every client of Go has it
    connection.sock = trusted.wrap_socket(plain, server_hostname=NAME)
    for _ in range(WARM_UP + ROUNDS):
        before_s = time.perf_counter()
        connection.request("POST", path, body)
        answer = connection.getresponse().read()
        spent_s.append(time.perf_counter() - before_s)
    print(json.dumps({"spent_s": spent_s[WARM_UP:], "patched": "patch" in json.loads(answer)["response"]}))


async def asked(port: int, authorities: bytes, path: str, body: bytes) -> Document:
    """What another process measures: the client's work is not the server's."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.cluster.webhook", str(port), authorities.decode(), path, stdin=PIPE, stdout=PIPE
    )
    said, _ = await child.communicate(body)
    found: Document = json.loads(said)
    return found


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    api = cluster()
    mirrors = ProfileMirrors(api, asyncio.Event())
    routes = [*ProfileAnswers(mirrors, api, api.clock).routes, NodeStatusAnswers(api.clock).route]
    server = HttpsServer(routes, host="127.0.0.1", port=0)
    pair = renewed(None, [NAME], datetime.now(UTC))
    assert pair is not None
    running = [asyncio.create_task(mirror.run()) for mirror in mirrors.every]
    await asyncio.sleep(0)
    await server.use(pair.certificate, pair.key)
    gc.freeze()  # as the webhook does once it has started
    rows = []
    questions = (
        ("pod, three profiles match", "/mutate", review("kind-3"), True),
        ("pod, no profile matches", "/mutate", review("other"), False),
        ("node's status, over-committed", "/mutate-node-status", node_review("64"), True),
    )
    for what, path, body, patched in questions:
        progress(f"webhook, {what}")
        before_s = getrusage(RUSAGE_SELF).ru_utime
        found = await asked(server.port, pair.authorities, path, body)
        user_ms = (getrusage(RUSAGE_SELF).ru_utime - before_s) / (WARM_UP + ROUNDS) * 1000
        assert found["patched"] == patched
        median, p99 = ((percentile(found["spent_s"], p) or 0) * 1000 for p in (50, 99))
        rows.append(Row(f"answer about a {what}, p50 / p99", f"{median:.2f} / {p99:.2f} ms", ROUNDS, TARGET))
        rows.append(Row(f"user CPU of that answer, {what}", f"{user_ms:.2f} ms", ROUNDS, "-"))
    await server.close()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return rows


def main() -> None:
    if sys.argv[1:]:
        ask(int(sys.argv[1]), *sys.argv[2:4])
        return
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
