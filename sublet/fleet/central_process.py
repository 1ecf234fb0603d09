"""Central as an installation runs it, in a process of its own: what it spends, what it says, what it has counted."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import aiohttp

import services
from shared.contracts.readiness import Readiness
from shared.errors import Unavailable
from shared.settings import PREFIX
from sublet.fleet.plan import FleetPlan
from sublet.fleet.servers import free_port

NODE = "hub"
CENTRAL_START_S = 60.0
STOP_S = 10.0
SCRAPE_S = 30.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_COUNTED = re.compile(r"^sublet_messages_(taken|refused)_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Counted:
    """Heartbeats that central has taken and refused since its start."""

    taken: int = 0
    refused: int = 0


class CentralProcess:
    """One life of central; its configuration file is `config.yaml` in its folder."""

    def __init__(self, folder: Path, nats_url: str, kubeconfig: Path | None, plan: FleetPlan, node: str = NODE) -> None:
        self.config_file = folder / "config.yaml"
        port = free_port()
        self._folder, self._metrics = folder, f"http://127.0.0.1:{port}/metrics"
        self._process: subprocess.Popen[bytes] | None = None
        cluster = {} if kubeconfig is None else {"SUBSTRATE": "kubernetes", "KUBECONFIG": str(kubeconfig)}
        settings = {
            "NODE": node, "NATS_URL": nats_url, "STATE_DIR": str(folder), "HTTP_PORT": str(port),
            "CENTRAL__RULES__LATE_S": f"{plan.late_s:g}", "CENTRAL__SHARDS": str(plan.shards), **cluster,
        }  # fmt: skip
        others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self._env = others | {f"{PREFIX}{name}": value for name, value in settings.items()}

    @property
    def pid(self) -> int:
        """Its process.

        Raises:
            Unavailable: it does not run (any more); with the end of what it said.
        """
        if self._process is None or self._process.poll() is not None:
            raise Unavailable(f"central has ended: {self._last_words()}", reason="central")
        return self._process.pid

    def start(self) -> None:
        """Start it; it waits for its servers by itself."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "central.log").open("wb") as log:
            command = [sys.executable, "-m", f"{services.__name__}.central"]
            self._process = subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self) -> None:
        """End it, and wait."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def cpu_s(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S

    @property
    def rss_bytes(self) -> int:
        """Memory that it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def counted(self) -> Counted:
        """What it has counted, by its own metrics.

        Raises:
            Unavailable: it does not answer.
        """
        limit = aiohttp.ClientTimeout(total=SCRAPE_S)
        try:
            async with aiohttp.ClientSession(timeout=limit) as session, session.get(self._metrics) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"central does not tell its metrics (process {self.pid}): {error!r}") from error
        found = {"taken": 0, "refused": 0}
        for kind, labels, value in _COUNTED.findall(text):
            if f'message="{Readiness.kind}"' in labels:
                found[kind] += int(float(value))
        return Counted(**found)

    async def wait_for_metrics(self, limit_s: float) -> None:
        """Wait until it answers.

        Raises:
            Unavailable: it does not within the time.
        """
        deadline_s = asyncio.get_running_loop().time() + limit_s
        while True:
            try:
                await self.counted()
                return
            except Unavailable:
                _ = self.pid
                if asyncio.get_running_loop().time() > deadline_s:
                    raise
                await asyncio.sleep(0.2)

    def _last_words(self) -> str:
        try:
            lines = (self._folder / "central.log").read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return lines[-1][:500] if lines else "it said nothing"
