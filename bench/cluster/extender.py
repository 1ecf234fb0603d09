"""Time of an answer to the scheduler, as it waits for it: HTTPS on one kept connection, about 100 candidates.

    python -m bench.cluster.extender

Over objects in memory, for the mirrors hold them in memory too. Every node has 50 pods, and says what it offers and
uses: while answers are asked for, as many messages come in as so many nodes send.
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
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from bench.rigs.report import Row, print_rows, progress
from services.central.adapters.https.certificate import renewed
from services.central.adapters.https.server import HttpsServer
from services.central.core.scheduling.cluster.node_documents import said_by_node, schedulable_node
from services.central.core.scheduling.cluster.pod_asks import pod_seen
from services.central.extender import Extender
from services.central.settings import ExtenderSettings
from shared.adapters.clock import SystemClock
from shared.contracts.cluster.decision import Decided
from shared.contracts.cluster.offer import NodeOffer, PodUses, ResourceAmounts
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.fakes.memory_objects import MemoryObjects
from sublet.demo.load import percentile

ROUNDS, WARM_UP = 500, 50
SIZES, PODS, CANDIDATES = (100, 1000, 5000), 50, 100
EVERY_S = 10.0
NAME = "sublet-extender.sublet-system.svc"
TARGET = "p99 20 ms"
VERBS = ("filter", "prioritize")
_PAGE_BYTES = 4096

Document = dict[str, Any]


class Silent:
    """A `DecisionLog` that nobody reads."""

    def say(self, decided: Decided) -> None:
        """Forget it."""


def pod(name: str, node: str = "", *, batch: bool = True) -> Document:
    """A pod of two containers."""
    requests = {RECLAIMED_CPU: "250", RECLAIMED_MEMORY: "256Mi"} if batch else {"cpu": "250m", "memory": "256Mi"}
    container = {"name": "main", "image": "i", "resources": {"requests": requests, "limits": requests}}
    meta = {"name": name, "namespace": "team", "uid": f"{abs(hash(name)):032x}"[:32]}
    return {"metadata": meta, "spec": {"containers": [container, {**container, "name": "beside"}], "nodeName": node}}


def offer(node: str, seq: int, uids: list[str], names: list[str]) -> NodeOffer:
    """What a node with so many pods says."""
    count = len(uids)
    uses = PodUses(uids=tuple(uids), namespaces=("team",) * count, names=tuple(names), qos=("shared_cores",) * count,
                   prod=(True,) * count, cpu_millis=(120,) * count, memory_bytes=(200 << 20,) * count)  # fmt: skip
    return NodeOffer(
        node=node, boot_id="0" * 16, seq=seq, sent_at=datetime.now(UTC), usage_age_s=1.0, window_s=60.0,
        reclaimed=ResourceAmounts(cpu_millis=64_000 - seq % 7, memory_bytes=256 << 30),
        used=ResourceAmounts(cpu_millis=20_000, memory_bytes=64 << 30), pods=uses,
    )  # fmt: skip


def cluster(nodes: int) -> tuple[Extender, list[bytes]]:
    """An extender that knows so many nodes, and a message of each."""
    clock = SystemClock()
    extender = Extender(MemoryObjects(clock), clock, ExtenderSettings(), Silent())
    messages = []
    for number in range(nodes):
        name = f"node-{number}"
        amounts = {"cpu": "96", "memory": "384Gi", RECLAIMED_CPU: "64000", RECLAIMED_MEMORY: "256Gi"}
        document = {"metadata": {"name": name}, "status": {"allocatable": amounts}}
        extender.view.put_node(f"uid-{number}", schedulable_node(document))
        documents = [pod(f"pod-{number}-{place}", name, batch=place % 2 == 0) for place in range(PODS)]
        for one in documents:
            extender.view.put_pod(one["metadata"]["uid"], pod_seen(one))
        uids, names = ([one["metadata"][key] for one in documents] for key in ("uid", "name"))
        messages.append(offer(name, number, uids, names).encode())
    return extender, messages


def ask(port: int, authorities: str) -> None:
    """Be the scheduler: send each body of standard input on one kept connection, and write the times, in seconds."""
    names: list[str] = json.loads(sys.stdin.buffer.read())
    connection, trusted = HTTPConnection("127.0.0.1", port), ssl.create_default_context(cadata=authorities)
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as every client of Go has it
    connection.sock = trusted.wrap_socket(plain, server_hostname=NAME)
    spent_s: dict[str, list[float]] = {verb: [] for verb in VERBS}
    answered = 0
    for turn in range(WARM_UP + ROUNDS):
        place = turn * CANDIDATES % len(names)
        chosen = (names[place:] + names[:place])[:CANDIDATES]
        body = json.dumps({"Pod": pod("asking"), "Nodes": None, "NodeNames": chosen})
        for verb in VERBS:
            before_s = time.perf_counter()
            connection.request("POST", f"/v1/{verb}", body)
            answer = json.loads(connection.getresponse().read())
            spent_s[verb].append(time.perf_counter() - before_s)
            answered += len(answer["NodeNames"] if verb == "filter" else answer)
        time.sleep(0.002)  # what the scheduler itself does with a pod
    print(json.dumps({"spent_s": {verb: times[WARM_UP:] for verb, times in spent_s.items()}, "answered": answered}))


async def keep_talking(extender: Extender, messages: list[bytes]) -> None:
    """Take the messages of all nodes, each once a period."""
    turn = 0
    while True:
        for _ in range(max(1, len(messages) // 1000)):
            hear(extender, messages[turn % len(messages)])
            turn += 1
        await asyncio.sleep(EVERY_S / min(1000, len(messages)))


def hear(extender: Extender, message: bytes) -> None:
    """As the listener does, behind its door."""
    said = NodeOffer.decode(message)
    extender.view.hear(said.node, said_by_node(said, time.monotonic(), time.time()))


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    pair = renewed(None, [NAME], datetime.now(UTC))
    assert pair is not None
    rows = []
    for size in SIZES:
        progress(f"extender, {size} nodes")
        before_bytes = resident_bytes()
        extender, messages = cluster(size)
        began_s = time.process_time()
        for message in messages:
            hear(extender, message)
        each_ms = (time.process_time() - began_s) / size * 1000
        held_mib = (resident_bytes() - before_bytes) / (1 << 20)
        server = HttpsServer(extender.answers.routes, host="127.0.0.1", port=0)
        await server.use(pair.certificate, pair.key)
        gc.freeze()  # as the extender does once it has started
        talking = asyncio.create_task(keep_talking(extender, messages))
        user_s = getrusage(RUSAGE_SELF).ru_utime
        found = await asked(server.port, pair.authorities, [f"node-{number}" for number in range(size)])
        user_ms = (getrusage(RUSAGE_SELF).ru_utime - user_s) / (WARM_UP + ROUNDS) * 1000
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        await server.close()
        assert found["answered"] == 2 * CANDIDATES * (WARM_UP + ROUNDS)
        for verb, spent_s in found["spent_s"].items():
            median, p99 = ((percentile(spent_s, p) or 0) * 1000 for p in (50, 99))
            what = f"extender, {verb} of {CANDIDATES} candidates of {size} nodes, p50 / p99"
            rows.append(Row(what, f"{median:.2f} / {p99:.2f} ms", ROUNDS, TARGET))
        rows.append(Row(f"user CPU of both, with the messages of {size} nodes", f"{user_ms:.2f} ms", ROUNDS, "-"))
        rows.append(Row(f"CPU of one node's message ({PODS} pods), {size} nodes", f"{each_ms:.2f} ms", size, "-"))
        what = f"memory of {size} nodes with {PODS} pods each, their last messages included"
        rows.append(Row(what, f"{held_mib:.0f} MiB", 1, "-"))
        del extender, messages
        gc.unfreeze()
        gc.collect()
    return rows


async def asked(port: int, authorities: bytes, names: list[str]) -> Document:
    """What another process measures: the client's work is not the server's."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.cluster.extender", str(port), authorities.decode(), stdin=PIPE, stdout=PIPE
    )
    said, _ = await child.communicate(json.dumps(names).encode())
    found: Document = json.loads(said)
    return found


def resident_bytes() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def main() -> None:
    if sys.argv[1:]:
        ask(int(sys.argv[1]), sys.argv[2])
        return
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
