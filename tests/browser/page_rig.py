"""A live page with a fleet of nodes on a real NATS server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rig_parts import until

from shared.adapters.nats.embedded.server import NatsServer

ROOT = Path(__file__).parents[2]
NODES = 2000
PATIENCE_S = 60.0


class LivePage:
    """The server, the page's process and the fleet; each can be killed."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.server = NatsServer(store_dir=folder / "nats", port=0, log_file=folder / "nats.log")
        self.server.start()
        state = folder / "state"
        state.mkdir()
        own = {"SUBLET_NATS_URL": self.server.url, "SUBLET_STATE_DIR": str(state), "SUBLET_NODE": "page",
               "SUBLET_SUBSTRATE": "sim", "SUBLET_CENTRAL__PAGE__PORT": "0"}  # fmt: skip
        self.page = self._start("services.central.page", own)
        self.fleet = self._start(Path(__file__).parent / "page_fleet.py", {}, self.server.url, str(nodes))
        wait_for((state / "page.json").exists, "the page's address")
        self.url = str(json.loads((state / "page.json").read_text())["url"])

    def _start(self, what: str | Path, env: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *(["-m", what] if isinstance(what, str) else [str(what)]), *arguments]
        with (self.folder / "processes.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=os.environ | env, stdout=log, stderr=log)

    def end(self) -> None:
        """Kill all of it."""
        for process in (self.page, self.fleet):
            process.kill()
            process.wait()
        self.server.stop()


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until it holds, and fail by name where it does not."""
    until(condition, PATIENCE_S, what)
