"""The pods beside which the agent is measured: at rest, all at work, and as large as an API server takes them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from crowd import LABEL, PODS, RECLAIMED, TENANT, Crowd, pod
from kube_rig.cluster import Cluster
from rig_parts import until

from bench.rigs.report import stage

AT_ONCE = 25
"""Pods that start together: more, and a small machine is out of breath."""
CALLS_AT_ONCE = 4
START_LIMIT_S = GONE_LIMIT_S = 600.0
QUOTA = {"limits": {"cpu": "10m"}, "requests": {"cpu": "1m"}}
SPIN = "while :; do :; done"
LARGEST_BYTES = 256 << 10
"""Of all annotations of an object, keys and values together (docs/facts/kubernetes.md#bounds-of-a-pods-size)."""
NEVER = "never"
FILLER = "bench.sublet.io/filler"

Document = dict[str, Any]


def at_rest(cluster: Cluster, count: int) -> list[Document]:
    """Half tenants, half batch, which sleep."""
    image = cluster.images.base.name
    return [pod(f"rest-{n:03}", image, _level(n), "sleep", "infinity") for n in range(count)]


def at_work(cluster: Cluster, count: int) -> list[Document]:
    """Half tenants, half batch, each of which uses up a small quota all the time."""
    image = cluster.images.base.name
    found = [pod(f"work-{n:03}", image, _level(n), "sh", "-c", SPIN) for n in range(count)]
    for one in found:
        one["spec"]["containers"][0]["resources"] = QUOTA
    return found


def largest(cluster: Cluster, count: int) -> list[Document]:
    """Pods with annotations up to the bound. They wait for a volume that never comes: once they ran, kubelet could not
    read of them (docs/facts/kubernetes.md#bounds-of-a-pods-size).
    """
    image = cluster.images.base.name
    found = [pod(f"large-{n:03}", image, _level(n), "sleep", "infinity") for n in range(count)]
    for one in found:
        notes = one["metadata"]["annotations"]
        used = sum(len(key) + len(value) for key, value in notes.items())
        notes[FILLER] = "x" * (LARGEST_BYTES - used - len(FILLER))
        one["spec"]["volumes"] = [{"name": NEVER, "configMap": {"name": "there-is-none"}}]
        # Only for volumes that a container mounts does kubelet wait.
        one["spec"]["containers"][0]["volumeMounts"] = [{"name": NEVER, "mountPath": "/never"}]
    return found


def _level(number: int) -> str:
    return RECLAIMED if number % 2 else TENANT


@contextmanager
def crowded(cluster: Cluster, documents: Sequence[Document], *, ready: bool = True) -> Iterator[None]:
    """These pods for as long as the block lasts: Ready, or else there."""
    crowd = Crowd(cluster, 0, 0)
    try:
        for begin in range(0, len(documents), AT_ONCE):
            crowd.create(*documents[begin : begin + AT_ONCE])
            there = min(len(documents), begin + AT_ONCE)
            stage(f"{there} of {len(documents)} pods")
            if ready:
                crowd.wait_ready(there, START_LIMIT_S)
        yield
    finally:
        stage("the pods end")
        _end(cluster, [one["metadata"]["name"] for one in documents])


def _end(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete pods one by one, and ask for one that is left: an answer with all of the largest takes a minute."""
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        list(pool.map(lambda name: cluster.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=1"), names))
    one_left = f"{PODS}?labelSelector={LABEL}=yes&limit=1"
    until(lambda: not cluster.request("GET", one_left)[1]["items"], GONE_LIMIT_S, "the end of the pods")
