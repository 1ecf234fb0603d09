"""Many pods at once on a node that others keep busy: who asks for them, and when each is ready."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from rig_parts import until

RECLAIMED, TENANT = "reclaimed_cores", "shared_cores"
PODS = "/api/v1/namespaces/default/pods"
LABEL = "crowd"
AT_ONCE = 8
POLL_S, GONE_LIMIT_S, BUSY_LIMIT_S = 1.0, 300.0, 120.0
SPIN = "while True: pass"

Document = dict[str, Any]


def pod(name: str, image: str, level: str, *words: str, millis: int = 0) -> Document:
    """On the node without asking a scheduler, so that it starts with and without Sublet, whatever is for sale."""
    resources = {"requests": {"cpu": f"{millis}m"}} if millis else {}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": list(words),
                 "resources": resources}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {LABEL: "yes"},
            "annotations": {"katalyst.kubewharf.io/qos_level": level},
        },
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


@dataclass(frozen=True, slots=True)
class Crowd:
    """Tenants and batch pods; of each kind one that is busy, from before the others come."""

    cluster: Cluster
    tenants: int
    batch: int

    @contextmanager
    def busy(self, processes: int) -> Iterator[None]:
        """A tenant with one busy worker, a batch pod with two, and so many processes of the machine at nice 19."""
        stress = self.cluster.images.stress.name
        with ExitStack() as stack:
            for _ in range(processes):
                words = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "19", sys.executable, "-c", SPIN]
                stack.callback(_end, subprocess.Popen(words))
            stack.callback(self.end)
            self.create(
                pod("busy-tenant", stress, TENANT, "stress", "-c", "1", millis=500),
                pod("busy-batch", stress, RECLAIMED, "stress", "-c", "2"),
            )
            until(lambda: self._ready() == 2, BUSY_LIMIT_S, "a busy tenant and a busy batch pod")
            yield

    def come(self) -> None:
        """All the others at once, tenants and batch pods by turns."""
        names = [f"{kind}-{n:02}" for n in range(max(self.tenants, self.batch)) for kind in ("batch", "tenant")
                 if n < (self.batch if kind == "batch" else self.tenants)]  # fmt: skip
        base = self.cluster.images.base.name
        levels = {"batch": RECLAIMED, "tenant": TENANT}
        self.create(*(pod(name, base, levels[name[:-3]], "sleep", "infinity") for name in names))

    def ready_s(self, kind: str) -> list[float]:
        """Seconds from its creation until it was ready, of each pod of a kind that is, ascending."""
        return sorted(
            (_time(ready) - _time(one["metadata"]["creationTimestamp"])).total_seconds()
            for one in self.pods()
            if one["metadata"]["name"].startswith(f"{kind}-")
            for ready in _ready_since(one)
        )

    def all_ready(self) -> bool:
        """Whether everybody is."""
        return self._ready() == self.tenants + self.batch + 2

    def wait_ready(self, count: int, limit_s: float) -> None:
        """Wait until so many of them are ready.

        Raises:
            TimeoutError: they are not.
        """
        until(lambda: self._ready() >= count, limit_s, f"{count} pods of the crowd being Ready")

    def come_and_be_ready(self, limit_s: float) -> float:
        """Seconds until all the others have come and are ready, or the limit."""
        began_s = time.monotonic()
        self.come()
        while not self.all_ready() and time.monotonic() < began_s + limit_s:
            time.sleep(POLL_S)
        return time.monotonic() - began_s

    def end(self) -> None:
        """Delete all, and wait until they are gone."""
        self.cluster.request("DELETE", f"{PODS}?labelSelector={LABEL}=yes&gracePeriodSeconds=1")
        until(lambda: not self.pods(), GONE_LIMIT_S, "the end of the crowd")

    def create(self, *documents: Document) -> None:
        """Of the crowd: they end with it. All at once, as far as the API server takes them so."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(lambda document: self.cluster.request("POST", PODS, document), documents))
        refused = [answer for code, answer in answers if code != HTTPStatus.CREATED]
        assert not refused, refused[0]

    def pods(self) -> list[Document]:
        """All that are there."""
        _, found = self.cluster.request("GET", f"{PODS}?labelSelector={LABEL}=yes")
        pods: list[Document] = found["items"]
        return pods

    def reclaimed(self, pod: Document) -> bool:
        """Whether it is a batch pod."""
        return bool(pod["metadata"]["annotations"]["katalyst.kubewharf.io/qos_level"] == RECLAIMED)

    def _ready(self) -> int:
        return sum(1 for one in self.pods() for _ in _ready_since(one))


def _ready_since(pod: Document) -> list[str]:
    conditions = pod["status"].get("conditions", [])
    return [one["lastTransitionTime"] for one in conditions if (one["type"], one["status"]) == ("Ready", "True")]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
