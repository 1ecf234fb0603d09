"""qrm as a process of its own on real cgroups and real NATS: killed without warning, the lease watchdog takes over."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from slow_machines import patience_s

from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.lease import file as lease
from services.qrm.adapters.lease.client import LeaseClient
from services.qrm.adapters.lease.watchdog import LeaseWatchdog
from services.qrm.core.writes.plan import Sets, WantedSets
from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.allocation import Allocation
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet
from shared.wire import Newest, Wire

HOST = Path("/")
NODE = "n1"
Until = Callable[[Callable[[], object]], Awaitable[None]]
_FIT = os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK) and (os.cpu_count() or 0) > 1
pytestmark = [pytest.mark.root, pytest.mark.skipif(not _FIT, reason="needs root, a writable v1 cpuset, two CPUs")]


class Host:
    """A top group of its own with a state directory; whatever was started is ended."""

    def __init__(self, state_dir: Path) -> None:
        self.cgroups, self.state_dir = Cgroups(HOST), state_dir
        self.top = f"sublet-test-{uuid.uuid4().hex[:8]}"
        self.reclaimed = f"{self.top}/reclaimed_cores"
        self.processes: list[subprocess.Popen[bytes]] = []
        state_dir.mkdir()

    def start(self, *command: str, **env: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *command], env=os.environ | env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.processes.append(process)
        return process

    def watchdog_pid(self) -> int | None:
        """The watchdog that holds the lock now."""
        if not LeaseClient(self.state_dir, HOST, self.top).watchdog_alive():
            return None
        text = (self.state_dir / lease.LOCK).read_text().strip()
        return int(text) if text else None

    def cpus(self, group: str = "") -> str | int | None:
        return self.cgroups.read(group or self.reclaimed, Knob.CPUS)

    def floor(self) -> dict[str, WantedSets]:
        whole, mems = CpuSet.parse("0-1"), CpuSet.parse("0")
        return {
            self.top: WantedSets(Sets(whole, mems)),
            self.reclaimed: WantedSets(Sets(CpuSet.parse("0"), mems), 0),
            f"{self.top}/shared_cores": WantedSets(Sets(whole, mems), 1),
        }

    def end(self) -> None:
        (self.state_dir / lease.FILE).unlink(missing_ok=True)
        pid = self.watchdog_pid()
        for process in self.processes:
            process.kill()
            process.wait()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self.cgroups.remove(self.top)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "state")
    yield host
    host.end()


async def test_the_watchdog_applies_the_floor_once_the_lease_has_passed_and_ends_with_it(
    host: Host, until: Until
) -> None:
    CgroupWriter(host.cgroups, host.top).make(host.floor())
    client = LeaseClient(host.state_dir, HOST, host.top)
    client.renew(60.0, host.floor())
    host.start("-m", "services.qrm.keeper", str(host.state_dir), "/")
    await until(host.watchdog_pid)
    assert host.cpus() == "0-1"
    client.renew(0.0, host.floor())
    await until(lambda: host.cpus() == "0")
    await until(client.watchdog_fired)
    await client.stop()
    await until(lambda: host.processes[0].poll() is not None)
    assert host.processes[0].returncode == 0


async def test_only_one_watchdog_watches_a_lease(host: Host, until: Until) -> None:
    LeaseClient(host.state_dir, HOST, host.top).renew(60.0, host.floor())
    arguments = ("-m", "services.qrm.keeper", str(host.state_dir), "/")
    first = host.start(*arguments)
    await until(host.watchdog_pid)
    second = host.start(*arguments)
    await until(lambda: second.poll() is not None)
    assert (second.returncode, first.poll(), host.watchdog_pid()) == (0, None, first.pid)


def test_a_lease_of_another_boot_or_without_sense_is_not_acted_on(host: Host) -> None:
    CgroupWriter(host.cgroups, host.top).make(host.floor())
    watching = LeaseWatchdog(host.state_dir, HOST)
    lease.write_lease(host.state_dir / lease.FILE, lease.Lease(1.0, "another boot", host.floor(), host.top))
    assert watching.check(100.0)
    (host.state_dir / lease.FILE).write_text("{")
    assert watching.check(100.0)
    assert host.cpus() == "0-1"
    (host.state_dir / lease.FILE).unlink()
    assert not watching.check(100.0)


class Talk:
    """The advisor's voice and qrm's allocations, over the real server."""

    def __init__(self, wire: Wire, heard: Newest[Allocation]) -> None:
        self.wire, self.heard = wire, heard

    async def advise(self, reclaim: int) -> None:
        pools = (PoolSize(pool="share", cpus=2), PoolSize(pool="reclaim", cpus=reclaim))
        await self.wire.publish(
            self.wire.stamp(PoolAdvice, policy="test", pools=pools, overlap=True,
                            reclaimed_cpu_millis=1000 * reclaim, reclaimed_memory_bytes=1 << 30)
        )  # fmt: skip

    def status(self) -> str:
        return self.heard.value.status if self.heard.value else "silent"

    async def say_until(self, reclaim: int, condition: Callable[[], object]) -> None:
        """Repeat the advice, as an advisor does, until something is so."""
        async with asyncio.timeout(patience_s(20)):
            while not condition():
                await self.advise(reclaim)
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
async def test_a_killed_qrm_is_outlived_by_its_lease_and_a_stopped_one_leaves_no_watchdog(
    host: Host, nats_server: NatsServer, until: Until, signal_name: str
) -> None:
    bus = await connect(nats_server.url, name="test", connect_timeout_s=10, clock=SystemClock())
    wire = Wire(bus, SystemClock(), node=NODE, service="advisor")
    talk = Talk(wire, await wire.newest(Allocation))
    env = {
        "SUBLET_NODE": NODE,
        "SUBLET_NATS_URL": nats_server.url,
        "SUBLET_STATE_DIR": str(host.state_dir),
        "SUBLET_QRM__TOP_GROUP": host.top,
        "SUBLET_QRM__LEASE_S": "2",
        "SUBLET_QRM__POLL_S": "0.1",
    }
    try:
        qrm = host.start("-m", "services.qrm", **env)
        await until(lambda: talk.status() == "floor")
        await talk.say_until(2, lambda: talk.status() == "applied")
        assert host.cpus() == "0-1"
        await until(host.watchdog_pid)
        qrm.send_signal(signal.Signals[signal_name])
        qrm.wait(patience_s(15))
        if signal_name == "SIGKILL":
            assert host.watchdog_pid() is not None
            await until(lambda: host.cpus() == "0")
            again = host.start("-m", "services.qrm", **env)
            await talk.say_until(2, lambda: host.cpus() == "0-1")
            again.terminate()
            again.wait(patience_s(15))
        await until(lambda: host.watchdog_pid() is None)
        assert not (host.state_dir / lease.FILE).exists()
    finally:
        await wire.stop()
        await bus.drain()
