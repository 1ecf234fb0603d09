"""The compose project of `deploy/compose`, as a stranger runs it, on the tests' engine and under a name of its own."""

import json
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rig_parts import until

from compose_rig.engine import Engine
from compose_rig.parts import HERE, PROJECT
from shared.core.evictions.audit import LedgerEntry

FOLDER = PROJECT / "deploy/compose"
NAME = "sublet-test"
IMAGE = "sublet:test"
BUILD_LIMIT_S, UP_LIMIT_S, RESTART_LIMIT_S = 400.0, 150.0, 60.0
_FILES = ("--file", str(FOLDER / "docker-compose.yaml"), "--file", str(HERE / "engine.yaml"))
_LABEL = f"label=com.docker.compose.project={NAME}"
_LEDGER = """
import json, pathlib
from dataclasses import asdict
from shared.adapters.ledger.reader import read_ledger
print(json.dumps([asdict(entry) for entry in read_ledger(pathlib.Path("/var/lib/sublet"))], default=sorted))
"""


@dataclass(frozen=True)
class Project:
    """The running project."""

    engine: Engine
    base: str

    @cached_property
    def _environment(self) -> Mapping[str, str]:
        ports = {name: str(_free_port()) for name in ("NATS_PORT", "NATS_HTTP_PORT")}
        return {"BASE": self.base, "SUBLET_IMAGE": IMAGE, **ports}

    @property
    def nats_url(self) -> str:
        """The bus, as the host reaches it."""
        return f"nats://127.0.0.1:{self._environment['NATS_PORT']}"

    def compose(self, *words: str, timeout_s: float = 60.0) -> str:
        """A compose command's output.

        Raises:
            EngineError: it failed; with its last words.
        """
        return self.engine.docker("compose", "--project-name", NAME, *_FILES, *words,
                                  env=self._environment, timeout_s=timeout_s)  # fmt: skip

    def build(self) -> None:
        """Make the image of this checkout."""
        self.compose("build", "--quiet", timeout_s=BUILD_LIMIT_S)
        self.engine.docker("image", "prune", "--force")
        self.engine.docker("builder", "prune", "--force", "--keep-storage", "1GB")

    def up(self) -> None:
        """Start what does not run, and wait until everything is healthy.

        Raises:
            EngineError: something did not become so; with the last words of every container.
        """
        self.compose("up", "--wait", "--wait-timeout", f"{UP_LIMIT_S:.0f}", timeout_s=2 * UP_LIMIT_S)

    def down(self) -> None:
        """Remove containers, network and volumes."""
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "20", timeout_s=120.0)

    def left(self) -> list[str]:
        """What the engine still has of this project."""
        found = [self.engine.docker("ps", "--all", "--quiet", "--filter", _LABEL)]
        found += [self.engine.docker(kind, "ls", "--quiet", "--filter", _LABEL) for kind in ("volume", "network")]
        return [word for text in found for word in text.split()]

    def containers(self) -> dict[str, dict[str, Any]]:
        """What the engine says about each container, by the name of its service."""
        ids = self.engine.docker("ps", "--all", "--quiet", "--filter", _LABEL).split()
        found = json.loads(self.engine.docker("inspect", *ids)) if ids else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def healthy(self, service: str) -> bool:
        """Whether its container runs and its health check passes."""
        state = self.containers()[service]["State"]
        return bool(state["Running"]) and state["Health"]["Status"] == "healthy"

    def kill(self, *services: str) -> None:
        """`docker kill`: gone at once, and it stays so until somebody starts it."""
        found = self.containers()
        self.engine.docker("kill", *(found[service]["Id"] for service in services))

    def crash(self, service: str) -> None:
        """End its process as a crash would, and wait until the restart policy has brought it back, healthy."""
        before = self.containers()[service]
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(lambda: self.containers()[service]["RestartCount"] > before["RestartCount"], RESTART_LIMIT_S,
              f"a restart of {service}")  # fmt: skip
        until(lambda: self.healthy(service), RESTART_LIMIT_S, f"{service}, restarted, being healthy")

    def exec(self, service: str, *words: str) -> str:
        """What a command prints in a running container.

        Raises:
            EngineError: it failed; with its last words.
        """
        return self.compose("exec", "--no-TTY", service, *words)

    def ledger(self, service: str) -> list[LedgerEntry]:
        """The ledger of the evictor in this container."""
        rows = json.loads(self.exec(service, "python", "-c", _LEDGER))
        return [LedgerEntry(**{**row, "waiting": frozenset(row["waiting"])}) for row in rows]

    def logs(self, service: str) -> list[str]:
        """The lines of a container, without prefix."""
        return self.compose("logs", "--no-log-prefix", "--no-color", service).splitlines()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
