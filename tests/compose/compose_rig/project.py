"""The compose project of `deploy/compose`, as a stranger runs it, on the tests' engine and under a name of its own."""

import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rig_parts import until
from testcontainers.compose import DockerCompose

from compose_rig.engine import Engine
from compose_rig.parts import HERE, PROJECT, client_folder
from shared.core.evictions.audit import LedgerEntry

FOLDER = PROJECT / "deploy/compose"
NAME = "sublet-test"
RESTART_LIMIT_S = 60.0
PORTS = ("NATS_PORT", "NATS_HTTP_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT")
_FILES = [str(FOLDER / "docker-compose.yaml"), str(HERE / "engine.yaml")]
_CLIENT = str(HERE / "docker")
_LABEL = f"label=com.docker.compose.project={NAME}"
_LEDGER = """
import json, pathlib
from dataclasses import asdict
from shared.adapters.ledger.reader import read_ledger
print(json.dumps([asdict(entry) for entry in read_ledger(pathlib.Path("/var/lib/sublet"))], default=sorted))
"""


def environment(engine: Engine, base: str) -> Mapping[str, str]:
    """What compose has to find in the environment of this process, since testcontainers hands that on as it is."""
    client = {"DOCKER_HOST": engine.address, "DOCKER_CONFIG": str(client_folder())}
    project = {"COMPOSE_PROJECT_NAME": NAME, "COMPOSE_REMOVE_ORPHANS": "1", "BASE": base, "SUBLET_IMAGE": "sublet:test"}
    project["BUILD_OPTIONS"] = "--network host"  # the engine has no bridge for builds
    return client | project | {name: str(_free_port()) for name in PORTS}


@dataclass(frozen=True)
class Project:
    """The running project.

    A failed command raises CalledProcessError, and its words are in the test's log. For compose, testcontainers starts
    no reaper: that would need an image from a registry.
    """

    engine: Engine
    compose: DockerCompose = field(default_factory=partial(DockerCompose, FOLDER, _FILES, docker_command_path=_CLIENT))

    @classmethod
    def with_more(cls, engine: Engine, *, profile: str = "", env_file: str = "") -> "Project":
        """The project with a profile (or several, `a,b`), or with a file of its folder that chooses one."""
        profiles, files = profile.split(",") if profile else None, [".env", env_file] if env_file else None
        more = DockerCompose(FOLDER, _FILES, docker_command_path=_CLIENT, profiles=profiles, env_file=files)
        return cls(engine, more)

    @property
    def nats_url(self) -> str:
        """The bus, as the host reaches it."""
        return f"nats://127.0.0.1:{os.environ['NATS_PORT']}"

    def build(self) -> None:
        """Make the image of this checkout, and start everything with it."""
        replace(self.compose, build=True, quiet_build=True).start()
        self.engine.docker("image", "prune", "--force")
        self.engine.docker("builder", "prune", "--force", "--keep-storage", "1GB")

    def up(self) -> float:
        """Start what does not run, and wait until everything is healthy; the seconds that took."""
        began_s = time.monotonic()
        self.compose.start()
        return time.monotonic() - began_s

    def down(self) -> None:
        """Remove containers, network and volumes."""
        self.compose.stop()

    def left(self) -> list[str]:
        """What the engine still has of this project."""
        found = [self.engine.docker("ps", "--all", "--quiet", "--filter", _LABEL)]
        found += [self.engine.docker(kind, "ls", "--quiet", "--filter", _LABEL) for kind in ("volume", "network")]
        return [word for text in found for word in text.split()]

    def containers(self) -> dict[str, dict[str, Any]]:
        """What the engine says about each container, by the name of its service."""
        found = self.compose.get_containers(include_all=True)
        told = json.loads(self.engine.docker("inspect", *(str(one.ID) for one in found)))
        return {str(one.Service): facts for one, facts in zip(found, told, strict=True)}

    def healthy(self, service: str) -> bool:
        """Whether its container runs and its health check passes."""
        found = self.compose.get_container(service, include_all=True)
        return (found.State, found.Health) == ("running", "healthy")

    def kill(self, service: str) -> None:
        """`docker kill`: gone at once, and it stays so until somebody starts it."""
        self.engine.docker("kill", str(self.compose.get_container(service).ID))

    def crash(self, service: str) -> None:
        """End its process as a crash would, and wait until the restart policy has brought it back, healthy."""
        before = self.containers()[service]
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(lambda: self.containers()[service]["RestartCount"] > before["RestartCount"], RESTART_LIMIT_S,
              f"a restart of {service}")  # fmt: skip
        until(lambda: self.healthy(service), RESTART_LIMIT_S, f"{service}, restarted, being healthy")

    def exec(self, service: str, *words: str) -> str:
        """What a command prints in a running container."""
        return self.compose.exec_in_container([*words], service)[0]

    def ledger(self, service: str) -> list[LedgerEntry]:
        """The ledger of the evictor in this container."""
        rows = json.loads(self.exec(service, "python", "-c", _LEDGER))
        return [LedgerEntry(**{**row, "waiting": frozenset(row["waiting"])}) for row in rows]

    def logs(self, service: str) -> list[str]:
        """The lines of a container, without prefix."""
        return [line.partition("| ")[2] for line in self.compose.get_logs(service)[0].splitlines()]

    def last_words(self) -> str:
        """Of every container, for somebody who asks why one is not healthy."""
        texts = [text for one in self.compose.get_containers(include_all=True) for text in one.get_logs()]
        return "\n".join(line for text in texts for line in text.decode().splitlines()[-5:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
