"""The simulated host as a process of its own, as `sublet up --substrate sim` starts it."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from shared.adapters.local.pods import LocalPods
from shared.core.pods.manifest import read_pod

Until = Callable[[Callable[[], object]], Awaitable[None]]

SCENARIO = """
name: tiny
machine: {sockets: 1, cores_per_numa: 1, memory: 1Gi, system_memory: 0}
steps:
  - at_s: 0
    apply:
      - kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: main, command: [stress, -c, "1"]}]}
  - {at_s: 0, exec: {pod: nobody, command: ["true"]}}
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "sublet.sim.live", str(tmp_path / "host"), str(tmp_path / "state"), str(scenario)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.communicate()


async def test_it_runs_pods_of_the_scenario_and_of_others_until_it_is_asked_to_stop(
    host: subprocess.Popen[bytes], tmp_path: Path, until: Until
) -> None:
    store = LocalPods(tmp_path / "state")
    await until(lambda: [pod.phase for pod in store.pods()] == ["Running"])
    assert (tmp_path / "host/proc/meminfo").exists()
    document = {"kind": "Pod", "metadata": {"name": "other"}, "spec": {"containers": [{"name": "a", "command": ["b"]}]}}
    store.add(read_pod(document, "0b").record)
    await until(lambda: {pod.key: pod.phase for pod in store.pods()}.get("default/other") == "Running")
    host.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(host.wait) == 0


def test_a_scenario_that_does_not_exist_ends_it_with_a_clear_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sublet.sim.live", str(tmp_path), str(tmp_path), "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "scenario 'nothing': no such file; built in: idle, memory, overcommit, quickstart, tide" in done.stderr
