"""A tenant whose pods are as large as the API server takes them: the node's services still see."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slow_machines import patience_s
from until_met import until_met

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.advice import PoolAdvice
from shared.contracts.bus.subjects import state_subject
from shared.contracts.envelope import MAX_MESSAGE_BYTES
from shared.contracts.readiness import Health
from shared.contracts.sample import NodeSample

PODS = 250
TESTS = Path(__file__).parents[2]
MOST_RESIDENT_KIB = 192 << 10


@pytest.fixture
def services(tmp_path: Path, nats_server: NatsServer) -> Iterator[subprocess.Popen[bytes]]:
    """The services in a process of their own."""
    env = os.environ | {
        "PYTHONPATH": f"{TESTS.parent}:{TESTS / 'trees'}", "SUBLET_NODE": "n1", "SUBLET_SUBSTRATE": "kubernetes",
        "SUBLET_HOST_ROOT": str(tmp_path / "host"), "SUBLET_STATE_DIR": str(tmp_path / "state"),
        "SUBLET_NATS_URL": nats_server.url, "SUBLET_QRM__MODE": "observe", "SUBLET_QRM__KEEPER": "false",
    }  # fmt: skip
    (tmp_path / "state").mkdir(mode=0o700)
    with (tmp_path / "log").open("w") as told:
        process = subprocess.Popen(
            [sys.executable, TESTS / "heavy_node.py", tmp_path], env=env, stderr=told, stdout=told
        )
    yield process
    process.terminate()
    process.wait(patience_s(20))


def resident_kib(process: subprocess.Popen[bytes]) -> int:
    """The most memory that the process has had so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(found)


@pytest.mark.timeout(180)
async def test_two_hundred_and_fifty_pods_of_a_megabyte_blind_nobody(
    services: subprocess.Popen[bytes], nats_server: NatsServer, tmp_path: Path
) -> None:
    bus = await connect(nats_server.url, name="attack/n1", connect_timeout_s=10, clock=SystemClock())
    samples, healths, advices = [], [], []
    try:
        await bus.subscribe(state_subject(NodeSample, "n1"), lambda got: samples.append(got.data))
        await bus.subscribe(
            f"{state_subject(Health, 'n1')}.metrics", lambda got: healths.append(Health.decode(got.data))
        )
        await bus.subscribe(state_subject(PoolAdvice, "n1"), lambda got: advices.append(PoolAdvice.decode(got.data)))

        async def spoken() -> bool:
            assert services.poll() is None, (tmp_path / "log").read_text()[-3000:]
            return len(samples) >= 4 and len(advices) >= 2 and bool(healths)

        await until_met(spoken, limit_s=150)
    finally:
        await bus.drain()
    assert max(map(len, samples)) <= MAX_MESSAGE_BYTES
    sample = NodeSample.decode(samples[-1])
    assert (len(sample.pods), sample.pods_left_out) == (PODS, 0)
    assert sum(one.pod.cpu_request_millis for one in sample.pods) == int((tmp_path / "asked").read_text())
    assert "bus" not in healths[-1].health.why
    print(f"sample {len(samples[-1])} bytes, resident at most {resident_kib(services)} KiB")
    assert resident_kib(services) < MOST_RESIDENT_KIB
