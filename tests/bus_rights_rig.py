"""The bus of the Kubernetes installation on this machine: a hub and leaves as the chart renders their configuration.

Only what a pod would bring is replaced: folders, ports, and the API server's answers to token reviews.
"""

import asyncio
import atexit
import base64
import contextlib
import functools
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from services.central.core.logins.bus_login import AUDIENCE, NODE_NAME
from services.central.core.logins.issuer_key import login_seed
from services.central.issuer import main as write_issuer
from services.central.logins.controller import LoginController
from shared.adapters.clock import SystemClock
from shared.adapters.ed25519 import SigningKey
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.callout import Callout
from shared.adapters.nats.embedded.server import PROGRAM, NatsServer, find_binary
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.errors import Unavailable
from shared.ports import Entry

DEPLOY = Path(__file__).parents[1] / "deploy"
RENDERED = DEPLOY / "k8s"
PASSWORD, ISSUER = "central-word", "issuer-word"
SERVER_PORTS = range(20_000, 32_000)
WORDS = {"CENTRAL_PASSWORD": PASSWORD, "LOGINS_PASSWORD": "logins-word", "BRIDGE_PASSWORD": "bridge-word"}
LEAF_TLS = 'tls { ca_file: "/etc/nats-tls/ca.crt", handshake_first: true, timeout: 5 }'
HUB_LEAF_TLS = (
    'tls { cert_file: "/etc/nats-tls/tls.crt", key_file: "/etc/nats-tls/tls.key", handshake_first: true, timeout: 5 }'
)
AGENTS = "system:serviceaccount:sublet-system:sublet-node"


def documents(overlay: str = "demo") -> list[Any]:
    """What an overlay applies."""
    paths = (RENDERED / "base/sublet.yaml", RENDERED / f"overlays/{overlay}/sublet.yaml")
    return [d for path in paths for d in yaml.safe_load_all(path.read_text())]


def configuration(file: str, overlay: str = "demo") -> str:
    """`hub.conf` or `leaf.conf`."""
    found = [d for d in documents(overlay) if d["kind"] == "ConfigMap" and d["metadata"]["name"] == "sublet-bus"]
    return str(found[0]["data"][file])


def divided(shards: int) -> dict[str, str]:
    """What stands in the chart's `hub.conf` where it divides the heartbeats, by what stands there else."""
    text = (RENDERED / "chart/templates/bus/config.yaml").read_text()
    inline = re.compile(r"\{\{ if gt \(int \.Values\.central\.shards\) 1 \}\}(.*?)\{\{ end \}\}")
    lines = [line.strip() for line in text.splitlines() if inline.search(line)]
    changed = {inline.sub("", line): inline.sub(r"\1", line) for line in lines}
    mapped = re.search(r"mappings: \{ \{\{ printf `(.*)` \(int \.Values\.central\.shards\) \}\} \}", text)
    assert mapped is not None
    assert len(changed) == 2
    return {**changed, "NODES {": f"NODES {{\n        mappings: {{ {mapped[1] % shards} }}"}


def leaf_script() -> str:
    """What the leaf's container runs."""
    (daemon,) = [d for d in documents() if d["kind"] == "DaemonSet"]
    (bus,) = [c for c in daemon["spec"]["template"]["spec"]["initContainers"] if c["name"] == "bus"]
    assert bus["command"][:2] == ["sh", "-c"]
    return str(bus["command"][2])


def hub_script() -> str:
    """What the hub's container runs."""
    found = [d for d in documents() if d["kind"] == "StatefulSet" and d["metadata"]["name"] == "sublet-bus"]
    (bus,) = [c for c in found[0]["spec"]["template"]["spec"]["containers"] if c["name"] == "bus"]
    assert bus["command"][:2] == ["sh", "-c"]
    return str(bus["command"][2])


def free_port() -> int:
    """A port that nobody has right now, from below those that the kernel gives to outgoing connections.

    One of the kernel's own could belong to such a connection before a server listens on it.
    """
    while True:
        port = secrets.choice(SERVER_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class ChartServer(NatsServer):
    """A server with the chart's configuration; `replaced` are texts in it that are a pod's."""

    overlay = "demo"

    def __init__(self, folder: Path, file: str, env: Mapping[str, str], replaced: Mapping[str, str] | None = None):
        super().__init__(store_dir=folder / "nats")
        self._file, self.env, self._replaced = file, dict(env), dict(replaced or {})
        self.folder = folder
        self.log = folder / "nats/nats.log"
        self.leaf_port = free_port()  # the server does not say which one it took

    def start(self) -> None:
        """Start with its own environment."""
        before = dict(os.environ)
        os.environ.update(self.env)
        try:
            super().start()
        finally:
            os.environ.clear()
            os.environ.update(before)

    @property
    def url(self) -> str:
        """Without a login: its own are in its configuration."""
        return self.address

    @property
    def port(self) -> int:
        """Where clients connect; 0 before it is known."""
        return self._port

    @port.setter
    def port(self, port: int) -> None:
        self._port = port

    async def monitored(self, page: str) -> dict[str, Any]:
        """A page of its monitoring (`jsz`)."""
        ports = json.loads((self.folder / f"nats/{PROGRAM}_{self.pid}.ports").read_text())
        async with aiohttp.ClientSession() as session, session.get(f"{ports['monitoring'][0]}/{page}") as answer:
            return dict(await answer.json())

    def _config(self) -> str:
        return self.text()

    def text(self) -> str:
        """The configuration as it stands in its file."""
        text = configuration(self._file, self.overlay)
        for here, there in self._replaced.items():
            assert here in text
            text = text.replace(here, there)
        for address in ("0.0.0.0:4222", "127.0.0.1:4222"):
            text = text.replace(f'listen: "{address}"', f'listen: "127.0.0.1:{self._port or -1}"')
        text = text.replace('listen: "0.0.0.0:7422"', f'listen: "127.0.0.1:{self.leaf_port}"')
        text = text.replace('http: "0.0.0.0:8222"', 'http: "127.0.0.1:-1"')
        text = text.replace("/var/lib/nats", str(self.folder / "store"))
        text = text.replace("/etc/nats-tls", str(self.folder / "tls"))
        return f'{text}\nlog_file: "{self.log}"\nports_file_dir: "{self.folder / "nats"}"\n'

    def said(self, words: str) -> bool:
        """Whether its log has these words."""
        return words in self.log.read_text(errors="replace")


class Reviews:
    """The API server: tokens that are valid, and whose they are."""

    def __init__(self) -> None:
        self.away = False
        self.tokens: dict[str, dict[str, Any]] = {}

    def issue(self, node: str, token: str = "", **changes: Any) -> str:
        """A token of the agent's pod on a node, as long as real ones."""
        token = token or f"eyJ{'h-_.' * 350}{node}"
        user = {"username": AGENTS, "extra": {NODE_NAME: [node]}}
        self.tokens[token] = {"authenticated": True, "audiences": [AUDIENCE], "user": user, **changes}
        return token

    async def review(self, token: str, audience: str) -> Mapping[str, Any]:
        """As the API server answers."""
        assert audience == AUDIENCE
        if self.away:
            raise Unavailable("no answer", reason="token_review")
        return self.tokens.get(token, {"authenticated": False, "error": "unknown token"})


@functools.cache
def certificates() -> Path:
    """What the installation's script makes: ca.crt, ca.key, tls.crt, tls.key. Clients of this process trust it."""
    made = new_certificates()
    os.environ["SSL_CERT_FILE"] = str(made / "ca.crt")
    return made


def new_certificates() -> Path:
    """Of an authority of their own, in a folder that ends with this process."""
    printed = subprocess.run(["sh", RENDERED / "secrets.sh"], check=True, capture_output=True, text=True).stdout
    secrets = {d["metadata"]["name"]: d["data"] for d in yaml.safe_load_all(printed) if d and d["kind"] == "Secret"}
    folder = Path(tempfile.mkdtemp(prefix="bus-certificates-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, text in secrets["sublet-bus-tls"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    (folder / "ca.key").write_bytes(base64.b64decode(secrets["sublet-bus-tls-ca"]["tls.key"]))
    return folder


def hub_server(folder: Path, env: Mapping[str, str], replaced: Mapping[str, str] | None = None) -> ChartServer:
    """A hub that is not started yet; `env` as its pod has it."""
    shutil.copytree(certificates(), folder / "tls")
    (folder / "nats-issuer").mkdir()
    environment = {**WORDS, "ISSUER": ISSUER, **env}
    write_issuer(folder / "nats-issuer", environment)
    return ChartServer(folder, "hub.conf", environment, replaced)


class Hub:
    """The hub, and central's part of it, which can be away. `close` stops the server."""

    def __init__(self, server: ChartServer) -> None:
        self.server = server
        self.reviews = Reviews()
        self._clients: list[NatsBus] = []

    def url(self, login: str) -> str:
        return self.server.url.replace("nats://", f"nats://{login}@")

    async def client(self, login: str, name: str) -> NatsBus:
        """Somebody who comes with a password."""
        bus = await connect(self.url(login), name=name, connect_timeout_s=5, clock=SystemClock())
        self._clients.append(bus)
        return bus

    @contextlib.asynccontextmanager
    async def central_answers(self) -> AsyncIterator[Callout]:
        """Central answers the hub's questions."""
        clock = SystemClock()
        logins = LoginController(self.reviews, SigningKey(login_seed(ISSUER)), clock, agents=AGENTS)
        answers = {logins.issuer: logins.answer}
        callout = Callout(self.url("logins:logins-word"), name="central/c", clock=clock, answers=answers)
        work = asyncio.create_task(callout.run())
        try:
            while callout.failure:
                await asyncio.sleep(0.01)
            yield callout
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await callout.close()

    def script(self) -> list[str]:
        """What the hub's container runs, with this machine's folders and ports, and less patience."""
        config = self.server.folder / "nats/hub.conf"
        config.write_text(self.server.text())
        words = {
            "/etc/nats/hub.conf": str(config),
            "/etc/nats-tls": str(self.server.folder / "tls"),
            "nats-server --config": f"{find_binary()} --config",
            "sleep 5": "sleep 0.2",
        }
        script = hub_script()
        for here, there in words.items():
            assert here in script
            script = script.replace(here, there)
        return ["sh", "-c", script]

    async def close(self) -> None:
        for client in self._clients:
            await client.drain()
        self.server.stop()


def started_hub(folder: Path, replaced: Mapping[str, str] | None = None) -> Hub:
    """One hub, running."""
    hub = Hub(hub_server(folder, {"POD_NAME": "hub-0"}, replaced))
    hub.server.start()
    return hub


class Leaf:
    """The leaf beside a node's agent. `conf` may be another one's than the chart's: a broken-in node writes its own."""

    def __init__(self, folder: Path, hub: Hub | None, node: str, *, replaced: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True)
        self.node, self.folder = node, folder
        self._hub = hub
        (folder / "nats-login").mkdir()
        (folder / "tls").mkdir()
        shutil.copy(certificates() / "ca.crt", folder / "tls/ca.crt")
        self.server = ChartServer(folder, "leaf.conf", {"LEAF_NAME": node}, replaced)

    def log_in_with(self, token: str) -> None:
        """Show this token at the next connection."""
        assert self._hub is not None
        url = f"nats-leaf://leaf:{token}@127.0.0.1:{self._hub.server.leaf_port}"
        (self.folder / "nats-login/remote.conf").write_text(f'url: "{url}"\n')

    def script(self) -> list[str]:
        """What the leaf's container runs, with this machine's folders and port, and less patience."""
        assert self._hub is not None
        self.server.port = free_port()
        config = self.folder / "nats/leaf.conf"
        config.parent.mkdir()
        config.write_text(self.server.text())
        hub_port = self._hub.server.leaf_port
        words = {
            "/etc/nats/leaf.conf": str(config),
            "/etc/nats-login": str(self.folder / "nats-login"),
            "/var/run/secrets/sublet-bus": str(self.folder),
            "nats-server --config": f"{find_binary()} --config",
            "sleep 5": "sleep 0.2",
            ":1CFE ": f":{hub_port:04X} ",
        }
        script = leaf_script()
        for here, there in words.items():
            script = script.replace(here, there)
        return ["sh", "-c", script]

    async def agent(self) -> NatsBus:
        """The bus as the node's services have it."""
        return await connect(self.server.url, name=f"node/{self.node}", connect_timeout_s=5, clock=SystemClock())


async def at_the_hub(leaf: Leaf) -> NatsBus:
    """The agent, once its leaf has got through to the hub."""
    agent = await leaf.agent()
    await reaches(agent, leaf.node)
    return agent


async def reaches(agent: NatsBus, node: str) -> None:
    """Wait until a node's agent hears of the configuration, which comes from the hub."""
    got: list[Entry] = []
    watch = await agent.watch(CONFIG_BUCKET, got.append, keys=("global",))
    end = time.monotonic() + 20
    while not got:
        assert time.monotonic() < end, f"node {node} does not reach the hub"
        await asyncio.sleep(0.01)
    await watch.stop()


class ComposeServer(NatsServer):
    """The accounts of the compose deployment on a server of the test's own."""

    def _access(self) -> str:
        text = (DEPLOY / "compose/nats.conf").read_text()
        return text[text.index("accounts {") :]

    @property
    def url(self) -> str:
        """Without a login: its own are in its configuration."""
        return self.address

    def url_of(self, login: str) -> str:
        """With "user:password"; the address alone for nobody."""
        return self.url.replace("nats://", f"nats://{login}@") if login else self.url


@contextlib.contextmanager
def running(*servers: ChartServer) -> Iterator[None]:
    """Start them, and stop them afterwards."""
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.stop()
