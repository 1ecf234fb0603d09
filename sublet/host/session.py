"""`Session` is one run of Sublet on this machine: embedded NATS, the services, and their end."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import structlog

import services
from shared.adapters.clock import SystemClock
from shared.adapters.files.replaced import replace_file
from shared.adapters.host.scheduling import give_best_nice
from shared.adapters.local.runtime import Runtime
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.adapters.process import BAD_SETTING, UNFIT
from shared.build import BUILD
from shared.contracts.services import CENTRAL, NODE_SERVICES
from shared.core.bus.nats_url import without_secrets
from shared.errors import SubletError, Unavailable, Unfit
from shared.settings import SYSTEM_STATE_DIR, CommonSettings, raw_settings
from sublet.bus_login import read_own_json, write_login, write_reader
from sublet.config_file import central_config_file
from sublet.host.capped_logs import keep_capped
from sublet.host.listening import NATS_HOST, ListenPort, answers, require_free
from sublet.host.preflight import require_fit, take_host
from sublet.host.readiness import wait_healthy
from sublet.host.supervise import Child
from sublet.host.teardown import any_groups, end_pods, remove_groups
from sublet.instance import RECORD, Instance, advertise, started_ticks, withdraw
from sublet.state.claim import claim_state
from sublet.state.folder import StateFolder

log = structlog.get_logger()

# Central first: it makes the streams and the bucket that the others wait for.
START_ORDER = (CENTRAL, *NODE_SERVICES)
PAGE, PAGE_FILE = "page", "page.json"
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
SERVER_POLL_S, SERVER_PAUSE_S = 0.1, 5.0
HOPELESS_ENDS = 2
"""Once may be a moment's shortage; whatever ends a start twice ends the third one."""
CONNECT_TIMEOUT_S = 5.0
HOPELESS_POLL_S = 0.02
POD_GRACE_S = 10.0


@dataclass
class Session:
    """Starts everything, keeps it running, takes it away. `say` gets one line for each step that a person waits for."""

    common: CommonSettings
    nats_url: str | None = None
    """A NATS server that runs already; None: one is started here."""
    nats_port: int = 4222
    """Port of the server started here; 0: any free one."""
    one_process: bool = False
    """The five node services share one process, as in a DaemonSet."""
    scenario: Path | None = None
    """What the simulated machine does (substrate `sim`)."""
    speed: float = 1.0
    """How many seconds of the scenario pass in a second."""
    http_port: int = 0
    """First port of /livez, /readyz and /metrics, one a process; 0: none."""
    page: bool = False
    """Whether the live page is served."""
    extra_env: Mapping[str, str] = field(default_factory=dict)
    forget: bool = False
    say: Callable[[str], None] = print
    children: dict[str, Child] = field(default_factory=dict)
    server: NatsServer | None = None
    unwell: Mapping[str, str] = field(default_factory=dict)
    """After the start: services that were not well in time, each with why."""
    _folder: StateFolder | None = None
    _host: int | None = None
    _found_groups: bool = True
    """Whether this host had pods' groups before this start: this start does not end those."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def _on_host(self) -> bool:
        return self.common.substrate == "host"

    @property
    def state_dir(self) -> Path:
        """Where everything about this run is kept."""
        return self.common.state_dir

    async def start(self) -> None:
        """Bring everything up and wait until the node's object is reported.

        Raises:
            Unfit: the machine or the state folder lacks something, or is not ours.
            Conflict: Sublet is up already.
            Unavailable: NATS or a service did not come up in time.
        """
        # Before the state folder is made: a machine that is not fit is left as it was.
        require_fit(self.common)
        self._folder = claim_state(self.state_dir, self.say)
        try:
            self._host = take_host(self.common)
            # Asked before anything starts, for qrm makes the groups itself; what a start that fails may end depends on
            # it.
            self._found_groups = self._on_host and any_groups(self.common.host_root)
            await require_free(self._ports())
            await self._start_all()
            await self._wait_ready()
        except OSError as error:
            await self._undo()
            raise Unfit(
                f"{error.filename or self.state_dir}: {error.strerror or error}; nothing was started"
            ) from error
        except BaseException:
            await self._undo()
            raise

    async def _start_all(self) -> None:
        (self.state_dir / "logs").mkdir(exist_ok=True)
        (self.state_dir / "cnr.json").unlink(missing_ok=True)  # its appearance is the sign of readiness
        if self.nats_url is None:
            self.server = NatsServer(store_dir=self.state_dir / "nats", port=self.nats_port,
                                     log_file=self.state_dir / "logs/nats.log")  # fmt: skip
            self._start_server(self.server)  # in this thread: the server lives as long as the one that started it
            self.nats_url = self.server.url
            write_reader(self.state_dir, self.common.node, self.server.reader_url, self.common.reader_group)
        # Before the services: a command that is typed meanwhile finds its way.
        write_login(self.state_dir, self.common.node, self.nats_url)
        where = f"  (process {self.server.pid})" if self.server else ""
        self.say(f"NATS        {without_secrets(self.nats_url)}{where}")
        if self.server is None and not await answers(self.nats_url):
            self.say(f"nothing answers there: is the address right? It is waited for {READY_TIMEOUT_S:.0f} s")
        self._tasks.append(asyncio.create_task(keep_capped(self.state_dir), name="logs"))
        if self.server is not None:
            self._tasks.append(asyncio.create_task(self._keep_server(self.server), name="supervise-nats"))
        if self._on_host:
            await asyncio.to_thread(Runtime(self.common).reconcile)  # what died while nobody watched is over
        else:
            self._supervise("sim", "sublet.sim.live", *self._sim_arguments())
            await self._wait_for(self.common.host_root / "proc/meminfo", "the simulated machine")
        names = (CENTRAL,) if self.one_process else START_ORDER
        for name in names:
            self._supervise(name, f"{services.__name__}.{name}")
        if self.one_process:
            self._supervise("node", "sublet.node")
        if self.page:
            (self.state_dir / PAGE_FILE).unlink(missing_ok=True)  # its appearance is the sign that the page is served
            self._supervise(PAGE, f"{services.__name__}.{CENTRAL}.{PAGE}")
        self._record()
        self._advertise()

    def _ports(self) -> Iterator[ListenPort]:
        """The ports that this run takes, as far as they are known before."""
        if self.nats_url is None and self.nats_port:
            yield ListenPort(f"--nats-port {self.nats_port}", NATS_HOST, self.nats_port)
        processes = (2 if self.one_process else len(START_ORDER)) + (not self._on_host) + self.page
        for position in range(processes if self.http_port else 0):
            yield ListenPort(f"--http-port {self.http_port}", self.common.http_host, self.http_port + position)

    def _sim_arguments(self) -> list[str]:
        arguments = [str(self.common.host_root), str(self.state_dir)]
        return [*arguments, str(self.scenario), f"{self.speed:g}"] if self.scenario else arguments

    def _supervise(self, name: str, module: str, *arguments: str) -> None:
        child = Child(
            name=name,
            # -P: a folder `shared` or `services` in the working directory is not ours.
            command=[sys.executable, "-P", "-m", module, *arguments],
            env=self._environment(len(self.children)),
            log_file=self.state_dir / f"logs/{name}.log",
        )
        self.children[name] = child
        self._tasks.append(asyncio.create_task(child.keep_running(self._restarted), name=f"supervise-{name}"))

    def _environment(self, position: int) -> dict[str, str]:
        own = {
            "SUBLET_NODE": self.common.node,
            "SUBLET_SUBSTRATE": self.common.substrate,
            "SUBLET_NATS_URL": self.nats_url or "",
            "SUBLET_HOST_ROOT": str(self.common.host_root),
            "SUBLET_STATE_DIR": str(self.state_dir),
            "SUBLET_HTTP_PORT": str(self.http_port and self.http_port + position),
        }
        # A simulated kernel moves in steps: looking more often than it steps would show the steps, not the load.
        calm = {"SUBLET_METRICS__PROBE_S": "1"} if self.common.substrate == "sim" else {}
        told = {"SUBLET_REPORTER__CLUSTER__OFFER": "true"} if self.page else {}
        # In this order: what the user has set goes before the simulator's wishes, and what this run knows before what
        # the user has set, or a service would look for another bus.
        return {**calm, **told, **os.environ, **own, **self.extra_env}

    def _start_server(self, server: NatsServer) -> None:
        server.start()
        # Each step of a reaction goes through it, where the services are processes of their own.
        if self._on_host and self.common.scheduling != "none" and server.pid is not None:
            give_best_nice(server.pid)

    async def _keep_server(self, server: NatsServer) -> None:
        """Start the NATS server again when it has ended; its port and its streams stay."""
        while True:
            await asyncio.sleep(SERVER_POLL_S)
            if server.pid is not None:
                continue
            log.warning("server.ended", server=server.address)
            try:
                self._start_server(server)
            except (SubletError, OSError, subprocess.SubprocessError) as error:  # the node controls itself meanwhile
                log.error("server.down", server=server.address, why=str(error), again_in_s=SERVER_PAUSE_S)
                await asyncio.sleep(SERVER_PAUSE_S)

    def _restarted(self) -> None:
        """A service has another process now; where the disk is full the other commands learn of it later."""
        try:
            self._record()
        except SubletError as error:
            log.warning("record.not_written", why=str(error))

    def _instance(self) -> Instance:
        return Instance(
            state_dir=str(self.state_dir.absolute()),
            pid=os.getpid(),
            started_ticks=started_ticks(os.getpid()),
            node=self.common.node,
            substrate=self.common.substrate,
            nats_server=without_secrets(self.nats_url or ""),
            version=BUILD.version,
        )

    def _advertise(self) -> None:
        """Tell everybody, where this is the one Sublet of the machine: root's, in root's folder or on its cgroups."""
        of_machine = self.state_dir == SYSTEM_STATE_DIR or (self._on_host and self.common.host_root == Path("/"))
        if os.geteuid() != 0 or not of_machine:
            return
        try:
            advertise(self._instance())
        except SubletError as error:  # as in a container whose /run is read-only: commands there need the settings
            log.warning("instance.not_advertised", why=str(error))

    def _record(self) -> None:
        """Tell the other commands where to find this run."""
        facts: dict[str, Any] = {
            **asdict(self._instance()),
            "host_root": str(self.common.host_root),
            "config_file": str(central_config_file(raw_settings(self._environment(0)), self.state_dir)),
            "services": {
                n: {"pid": c.pid, "restarts": c.restarts, "log": str(c.log_file)} for n, c in self.children.items()
            },
        }
        replace_file(self.state_dir / RECORD, json.dumps(facts, indent=1).encode(), what="record of this run")

    async def _wait_ready(self) -> None:
        await self._wait_for(self.state_dir / "cnr.json", "the first report of the node")
        if self.page:
            await self._wait_for(self.state_dir / PAGE_FILE, "the live page")
        self.unwell = await self._wait_healthy()
        for name, child in self.children.items():
            self.say(f"{name:<11} process {child.pid}")

    async def _wait_healthy(self) -> dict[str, str]:
        """Wait until all services are well; those that are not after a bounded time, and why.

        Raises:
            Unfit, Unavailable: one of them has no hope.
        """
        name, clock = f"up/{self.common.node}", SystemClock()
        bus = await connect(self.nats_url or "", name=name, connect_timeout_s=CONNECT_TIMEOUT_S, clock=clock)
        waiting = asyncio.create_task(wait_healthy(bus, self.common.node))
        try:
            while not waiting.done():
                self._refuse_hopeless()
                await asyncio.wait({waiting}, timeout=HOPELESS_POLL_S)
            return waiting.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await bus.drain()

    async def _wait_for(self, path: Path, what: str) -> None:
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while not path.exists():
                    self._refuse_hopeless()
                    await asyncio.sleep(HOPELESS_POLL_S)
        except TimeoutError:
            raise Unavailable(
                f"{what} did not come within {READY_TIMEOUT_S:.0f} s; see the logs in {self.state_dir / 'logs'}"
            ) from None

    @property
    def page_url(self) -> str:
        """The address of the live page with its login; "" where it is not served."""
        return str(read_own_json(self.state_dir / PAGE_FILE).get("url", "")) if self.page else ""

    async def fault(self) -> str:
        """Wait until something that keeps a process running has itself ended, and say which and why."""
        over, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        return _why(over.pop())

    def _refuse_hopeless(self) -> None:
        """A service that cannot use its settings, or not run here, will not do so at the next try either."""
        for child in self.children.values():
            # Not NOT_THERE: a NATS server or a port that is missing now may come.
            if child.last_code in (BAD_SETTING, UNFIT):
                raise Unfit(f"{child.name}: {child.last_words()}")
            if child.early_ends >= HOPELESS_ENDS:
                raise Unavailable(
                    f"{child.name} has ended {child.early_ends} times at its start, at last with code "
                    f"{child.last_code}: {child.last_words()}; all of it: {child.log_file}"
                )
        for task in self._tasks:
            if task.done():
                raise Unavailable(_why(task))

    async def stop(self) -> list[str]:
        """Take everything away, in the order that is safe at every moment; returns what could not be removed."""
        # Pods first: their limits are kept as long as anything of them runs.
        self.say("stopping: pods first, then the services, then what they made")
        if self._on_host:
            await asyncio.to_thread(end_pods, self.common.host_root, grace_s=POD_GRACE_S)
        await self._end_processes(STOP_TIMEOUT_S)
        left = (
            await asyncio.to_thread(remove_groups, self.common.host_root, grace_s=POD_GRACE_S) if self._on_host else []
        )
        if self._folder is not None:
            self._folder.empty(forget=self.forget)
        self._let_go()
        return left

    async def leave(self) -> None:
        """End the services and nothing else: pods, groups and state stay for the next start, as after a crash."""
        await self._end_processes(0.0)  # killed, so that qrm's watchdog narrows what goes on unwatched
        (self.state_dir / RECORD).unlink(missing_ok=True)
        self._let_go()

    async def _undo(self) -> None:
        """Undo a start that failed. What was there before the start stays, pods above all."""
        if self._found_groups and self.children:
            self.say("pods that ran before go on; to end them: sublet down")
            await self.leave()
            return
        await self._end_processes(STOP_TIMEOUT_S)
        if not self._found_groups and self._on_host:
            await asyncio.to_thread(remove_groups, self.common.host_root, grace_s=POD_GRACE_S)
        if self._folder is not None:
            self._folder.undo()
        self._let_go()

    async def _end_processes(self, timeout_s: float) -> None:
        await asyncio.gather(*(child.stop(timeout_s) for child in self.children.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # The server last: what the services say in their last moments goes over it.
        if self.server is not None:
            await asyncio.to_thread(self.server.stop)

    def _let_go(self) -> None:
        if os.geteuid() == 0:
            withdraw(os.getpid())
        if self._host is not None:
            os.close(self._host)
        if self._folder is not None:
            self._folder.release()


def _why(over: "asyncio.Task[None]") -> str:
    error = None if over.cancelled() else over.exception()
    return f"{over.get_name()} has ended ({error or 'it should run for ever'})"
