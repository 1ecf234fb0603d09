"""Every file that a node agent opens, unreadable: a folder stands in its place, which no right helps against (EISDIR).

A denial by SELinux or AppArmor is another number from the same call (EACCES), and takes the same way. The agent either
goes on and says what it does not see, or ends with one clear line; it never dies of it again and again.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from kube_api import serving
from test_kubernetes_node import BUSY, GIB, NODE, RAW, ClusterNode

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Runner
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.errors import SubletError
from shared.settings import common_settings
from sublet.load.demand import SimDemand
from sublet.node import PLANS

Until = Callable[[Callable[[], object]], Awaitable[None]]

PATHS = (
    "host/proc/stat",
    "host/proc/meminfo",
    "host/proc/loadavg",
    "host/proc/vmstat",
    "host/proc/pressure/memory",
    "host/proc/sys/kernel/random/boot_id",
    "host/sys/devices/system/cpu/online",
    "host/sys/devices/system/node/online",
    "host/sys/devices/system/node/node0/meminfo",
    "host/sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "host/sys/fs/cgroup/kubepods.slice/cpuset.cpus",
    "host/sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective",
    "host/sys/fs/cgroup/kubepods.slice/cpu.stat",
    "host/sys/fs/cgroup/kubepods.slice/memory.stat",
    "host/sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice/memory.max",
    "host/var/lib/kubelet/cpu_manager_state",
    "state/checkpoint.json",
    "state/node-pods.json",
    "state/lease.json",
    "state/lease.lock",
    "state/lease.fallen",
    "state/ledger.db",
)


class Agent:
    """The five services of a node in one process, and how that ended."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.node = folder, ClusterNode(folder / "host", KubeletLayout("systemd"), 2)
        self.node.run_pod("web", "shared_cores", "Burstable", BUSY, cpu="2", memory="2Gi")
        self.node.run_pod(
            "encode", "reclaimed_cores", "BestEffort", SimDemand(1, GIB), **{TUTORIAL_RECLAIMED_CPU: "2k"}
        )
        (folder / "state").mkdir()
        self.runner: Runner | None = None
        self.refused = ""

    def spoil(self, path: str) -> None:
        """Put a folder in a file's place."""
        at = self.folder / path
        if at.is_dir():
            shutil.rmtree(at)
        at.unlink(missing_ok=True)
        (at / "in-the-way").mkdir(parents=True)

    def whys(self) -> str:
        """What the services say is wrong."""
        assert self.runner is not None
        return "; ".join(health.why for health in self.runner.healths())

    @contextlib.asynccontextmanager
    async def running(self, url: str) -> AsyncIterator["asyncio.Task[int]"]:
        stop, clock = asyncio.Event(), SystemClock()
        async with serving(self.node.api, self.folder) as kubeconfig:
            common = common_settings({
                "node": NODE, "substrate": "kubernetes", "kubeconfig": kubeconfig, "host_root": self.folder / "host",
                "state_dir": self.folder / "state", "heartbeat_s": 0.2,
            })  # fmt: skip
            bus = await connect(url, name="node", connect_timeout_s=10, clock=clock)
            self.runner = Runner(PLANS, bus, clock, common, RAW | {"qrm": {"poll_s": 0.05}})
            living = asyncio.create_task(self.node.live())
            work = asyncio.create_task(self.runner.run(stop))
            try:
                yield work
            finally:
                stop.set()
                living.cancel()
                await asyncio.gather(living, work, return_exceptions=True)


def ended(work: "asyncio.Task[int]") -> str:
    """The one clear line it ended with; "" while it runs.

    Raises:
        AssertionError: a task has died, or something else than Sublet's own error came out.
    """
    if not work.done():
        return ""
    error = work.exception()
    assert isinstance(error, SubletError), f"ended by {error!r}, code {None if error else work.result()}"
    return str(error)


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_that_cannot_be_read_from_the_start_is_a_condition_or_one_clear_line(
    tmp_path: Path, nats_server: NatsServer, until: Until, path: str
) -> None:
    agent = Agent(tmp_path)
    agent.spoil(path)
    async with agent.running(nats_server.url) as work:
        await asyncio.wait({work}, timeout=1.5)
        said = ended(work)
        assert not said or path.rpartition("/")[2] in said or path.removeprefix("host/") in said
        if not said:
            await until(lambda: agent.runner is not None and len(agent.runner.healths()) == len(PLANS))
