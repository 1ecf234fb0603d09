"""The shipped recording, made up by rule: a 48-CPU node, noisy web services with spikes, one batch job, 20 minutes.

    python -m sublet.replay.generate examples/traces/web-and-batch.jsonl.gz

Each service has a base use, a slow wave, noise that lasts some seconds, and spikes that begin within one frame and
fade; at one moment a deployment makes three of them spike together. The same seed makes the same frames on every
machine: only `random.Random.random` is used, which is the same in every Python.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.core.cpus.topology import Cpu, Topology
from sublet.exit_codes import REFUSED
from sublet.replay.traces.frames import sample_of
from sublet.replay.traces.recording import Writer

NODE = "example"
SEED = 20240229
LENGTH_S, PERIOD_S = 1200.0, 2.0
CORES, SMT = 24, 2
MEMORY_BYTES = 195_924_424 << 10
"""As the tutorial's node."""
DEPLOYMENT_S = 540.0
NOISE_LASTS = 0.8
"""Part of one frame's noise that is left in the next."""
_GIB = 1 << 30
TEMPLATE_HASH = "6b7c9d5f4"
"""As Deployments name what owns their pods."""
CACHE_BYTES = 256 << 20
"""Of a service; a quarter of it was read lately, which the kernel would not drop."""


@dataclass(frozen=True, slots=True)
class Service:
    """How one web service behaves; cores unless the name says otherwise."""

    name: str
    request: float
    base: float
    wave: float
    wave_s: float
    noise: float
    spike: float
    spikes_per_hour: float
    deploys: bool = False


SERVICES = (
    Service("cart", 4, 1.0, 0.4, 600, 0.25, 4.0, 9),
    Service("checkout", 4, 0.7, 0.3, 480, 0.20, 4.0, 6, deploys=True),
    Service("frontend", 8, 2.4, 1.0, 900, 0.50, 9.0, 12, deploys=True),
    Service("payments", 4, 0.4, 0.1, 700, 0.10, 2.5, 6),
    Service("ranking", 8, 1.8, 0.6, 540, 0.40, 7.0, 9),
    Service("search", 8, 2.1, 0.8, 720, 0.60, 10.0, 12, deploys=True),
)
BATCH = Pod(
    uid="b0",
    namespace="batch",
    name="encode",
    qos="reclaimed_cores",
    containers=(Container(name="main", cpu_request_millis=12_000, memory_request_bytes=8 * _GIB),),
)


class _Running:
    """One service while it is made up."""

    def __init__(self, number: int, service: Service, random: Random) -> None:
        self._service, self._random = service, random
        self._phase = 2 * math.pi * random.random()
        self._noise = self._spike = 0.0
        self._load1 = self._load5 = service.base
        self._rss_bytes = int((1 + random.random()) * _GIB)
        container = Container(name="main", cpu_request_millis=round(1000 * service.request), memory_request_bytes=_GIB)
        owner = f"ReplicaSet/{service.name}-{TEMPLATE_HASH}"
        self.pod = Pod(uid=f"a{number}", namespace="shop", name=service.name, owner=owner, containers=(container,))

    def reading(self, at_s: float) -> dict[str, Any]:
        """The container's figures at this frame."""
        service, random = self._service, self._random
        # Three even draws are near enough to a bell.
        draw = random.random() + random.random() + random.random() - 1.5
        self._noise = NOISE_LASTS * self._noise + service.noise * draw
        begins = random.random() < service.spikes_per_hour * PERIOD_S / 3600 or (
            service.deploys and abs(at_s - DEPLOYMENT_S) < PERIOD_S / 2
        )
        self._spike = service.spike * (0.6 + 0.4 * random.random()) if begins else self._spike * math.exp(-PERIOD_S / 9)
        wave = service.wave * math.sin(self._phase + 2 * math.pi * at_s / service.wave_s)
        cores = max(0.02, service.base + wave + self._noise + self._spike)
        waiting = 0.02 * cores + 0.5 * max(0.0, cores - service.request)
        for attribute, window_s in (("_load1", 60.0), ("_load5", 300.0)):
            before = getattr(self, attribute)
            setattr(self, attribute, cores + (before - cores) * math.exp(-PERIOD_S / window_s))
        self._rss_bytes += int((random.random() - 0.48) * (4 << 20))
        return {
            "name": "main",
            "cpu_usage_cores": cores,
            "load1": self._load1,
            "load5": self._load5,
            "runnable_tasks": round(cores + waiting),
            "memory_rss_bytes": self._rss_bytes,
            "memory_cache_bytes": CACHE_BYTES,
            "memory_working_set_bytes": self._rss_bytes + CACHE_BYTES // 4,
        }


def topology() -> Topology:
    """Two sockets of 12 cores with two threads each, as the tutorial's machine."""
    half = CORES // 2
    return Topology.of(
        Cpu(cpu, cpu % CORES // half, cpu % CORES // half, cpu % CORES, cpu % CORES // half)
        for cpu in range(CORES * SMT)
    )


def samples(seed: int = SEED, length_s: float = LENGTH_S) -> Iterator[tuple[float, NodeSample]]:
    """Time and sample of each frame."""
    random = Random(seed)  # noqa: S311 - a picture, no secret
    services = [_Running(number, service, random) for number, service in enumerate(SERVICES)]
    for number in range(round(length_s / PERIOD_S) + 1):
        at_s = number * PERIOD_S
        tenants = [{"pod": service.pod, "containers": [service.reading(at_s)]} for service in services]
        yield at_s, sample_of(NODE, number + 1, at_s, _fields(tenants, random))


def _fields(tenants: list[dict[str, Any]], random: Random) -> dict[str, Any]:
    used = sum(tenant["containers"][0]["cpu_usage_cores"] for tenant in tenants)
    held = sum(tenant["containers"][0]["memory_rss_bytes"] for tenant in tenants)
    system, batch = 0.3 + 0.2 * random.random(), 11.5 + 0.5 * random.random()
    encode = {"name": "main", "cpu_usage_cores": batch, "load1": 12.0, "load5": 12.0, "memory_rss_bytes": 6 * _GIB}
    return {
        "window_s": PERIOD_S,
        "node_reading": {
            "online_cpus": f"0-{CORES * SMT - 1}",
            "cpu_usage_cores": used + batch + system,
            "memory_total_bytes": MEMORY_BYTES,
            "memory_available_bytes": MEMORY_BYTES - held - 10 * _GIB,
            "watermark_scale_factor": 10,
        },
        "pools": [
            {"pool": "share", "cpu_usage_cores": used},
            {"pool": "reclaim", "cpu_usage_cores": batch, "memory_usage_bytes": 6 * _GIB},
        ],
        "pods": [*tenants, {"pod": BATCH, "containers": [encode]}],
    }


def write(out: BinaryIO, seed: int = SEED, length_s: float = LENGTH_S) -> None:
    """Write the recording."""
    writer = Writer(out, NODE, topology())
    for at_s, sample in samples(seed, length_s):
        writer.write(at_s, sample)
    writer.close()


def main(arguments: Sequence[str]) -> int:
    """Write the recording into the file that is named; 2 where none is, or an option, of which there are none."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m sublet.replay.generate FILE", file=sys.stderr)
        return REFUSED
    with Path(arguments[0]).open("wb") as file:
        write(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
