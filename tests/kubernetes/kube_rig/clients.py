"""How a test reaches a cluster: its clients, each for whoever it is told to be."""

import http.client
import json
import os
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rig_parts import until

from kube_rig.certificates import Authority, Identity
from kube_rig.control_plane import API_PORT, client
from kube_rig.isolation import NODE_IP

REQUEST_LIMIT_S, GONE_LIMIT_S = 30.0, 90.0


class CommandError(Exception):
    """A client of the cluster said no; with its words."""


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of a running cluster."""

    programs: Mapping[str, Path]
    authority: Authority
    folder: Path
    admin: Path
    """A kubeconfig for which nothing is forbidden."""
    administrator: Identity
    """The same user's certificate."""

    def kubectl(self, *words: str, given: str | None = None, kubeconfig: Path | None = None) -> str:
        """What kubectl prints; `given` is its standard input (`apply -f -`), the admin is who asks if nobody else.

        Raises:
            CommandError: it failed.
        """
        return self._run("kubectl", words, given, kubeconfig)

    def aside(self, *words: str) -> subprocess.Popen[bytes]:
        """A kubectl that goes on in the background; nobody hears what it says."""
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            [self.programs["kubectl"], *words],
            env=self._environment(None),
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
        )

    def helm(self, *words: str, given: str | None = None) -> str:
        """What helm prints.

        Raises:
            CommandError: it failed.
        """
        return self._run("helm", words, given, None)

    def get(self, *words: str) -> dict[str, Any]:
        """An object or a list of them, as the API server has it.

        Raises:
            CommandError: there is none.
        """
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "--output", "json"))
        return found

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status code and answer of the API server for the admin, at any path; a refusal is an answer."""
        trusting = ssl.create_default_context(cafile=str(self.authority.certificate))
        trusting.load_cert_chain(self.administrator.certificate, self.administrator.key)
        connection = http.client.HTTPSConnection(NODE_IP, API_PORT, timeout=REQUEST_LIMIT_S, context=trusting)
        with closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects.

        Raises:
            CommandError: one was refused.
        """
        self.kubectl("apply", "--filename", "-", given=yaml.safe_dump_all(objects))

    def wait_ready(self, pod: str, limit_s: float) -> None:
        """Wait until a pod of `default` is Ready, by looking: the watch of `kubectl wait` misses it on 1.32.5.

        Raises:
            TimeoutError: it is not in time; with the conditions that it had last.
        """
        seen: list[dict[str, Any]] = []

        def ready() -> bool:
            _, found = self.request("GET", f"/api/v1/namespaces/default/pods/{pod}")  # no process each look
            seen[:] = found.get("status", {}).get("conditions", [])
            return any(one["type"] == "Ready" and one["status"] == "True" for one in seen)

        try:
            until(ready, limit_s, f"pod {pod} Ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; its conditions: {seen}") from error

    def wait_gone(self, name: str) -> None:
        """Wait for the end of an object that is on its way out (`namespace/x`), if there is one.

        Raises:
            TimeoutError: it stays.
        """
        look = ("get", name, "--ignore-not-found", "--output", "name")
        until(lambda: not self.kubectl(*look), GONE_LIMIT_S, f"{name} gone")

    def client(self, user: str, groups: Sequence[str] = ()) -> Path:
        """The kubeconfig of any user: who it is says the certificate, what it may the cluster's roles."""
        return client(self.authority, self.folder, user, groups)

    def _run(self, name: str, words: Sequence[str], given: str | None, kubeconfig: Path | None) -> str:
        done = subprocess.run(
            [self.programs[name], *words],
            env=self._environment(kubeconfig),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CommandError((done.stderr or done.stdout).strip())
        return done.stdout

    def _environment(self, kubeconfig: Path | None) -> dict[str, str]:
        """No client knows what somebody has set up for himself on this machine."""
        home = str(self.folder / "home")
        folders = {f"XDG_{kind}_HOME": home for kind in ("CONFIG", "CACHE", "DATA")}
        return {**os.environ, "KUBECONFIG": str(kubeconfig or self.admin), "HOME": home, "NO_PROXY": "*", **folders}
