"""The NATS servers of a fleet, all on loopback: a hub with the accounts of an installation, and leaves below it."""

import json
import secrets
import socket
from pathlib import Path

from shared.adapters.nats.embedded.server import HOST, NatsServer
from shared.contracts.bus.subjects import CONFIG_BUCKET, CONFIG_STREAM, NODE_API, NODE_KV, shard_subject, state_subject
from shared.contracts.readiness import Readiness
from shared.core.bus.nats_url import with_login

CENTRAL, NODE = "central", "node"
READY = state_subject(Readiness, "*")
KV, READS = f"$KV.{CONFIG_BUCKET}.>", f"DIRECT.GET.{CONFIG_STREAM}.$KV.{CONFIG_BUCKET}.>"


class FleetHub(NatsServer):
    """The hub: central in one account, all nodes in another, as the chart configures it but for the logins' rights."""

    def __init__(self, folder: Path, shards: int = 1) -> None:
        super().__init__(store_dir=folder, start_timeout_s=30.0)
        self._shards = shards
        self._secrets = {CENTRAL: secrets.token_hex(16), NODE: secrets.token_hex(16)}
        # The server tells its other ports when it has chosen them, and this one never: so it is chosen here.
        self._leaf_port = free_port()

    @property
    def central_url(self) -> str:
        """Central's address and login."""
        return with_login(self.address, CENTRAL, self._secrets[CENTRAL])

    @property
    def leaf_url(self) -> str:
        """Where leaves come in."""
        return f"nats-leaf://{NODE}:{self._secrets[NODE]}@{HOST}:{self._leaf_port}"

    def _config(self) -> str:
        quoted = {name: json.dumps(str(path)) for name, path in self._paths().items()}
        return "\n".join([
            f'listen: "{HOST}:{self._port or -1}"', f"log_file: {quoted['log']}", f"ports_file_dir: {quoted['ports']}",
            "max_connections: 4096", "max_pending: 256MB",
            f"jetstream {{ store_dir: {quoted['store']}, domain: hub, sync_interval: always }}",
            f'leafnodes {{ listen: "{HOST}:{self._leaf_port}", isolate_leafnode_interest: true }}',
            f"accounts: {json.dumps(self._accounts())}",
        ]) + "\n"  # fmt: skip

    def _accounts(self) -> dict[str, object]:
        ours, nodes = {"accounts": ["SUBLET"]}, {"accounts": ["NODES"]}
        users = {name: [{"user": name, "password": word}] for name, word in self._secrets.items()}
        divided = READY.replace("*", f"{{{{partition({self._shards},1)}}}}.{{{{wildcard(1)}}}}")
        heard = [READY] if self._shards == 1 else [READY, shard_subject("*")]
        return {
            "NODES": {
                "mappings": {} if self._shards == 1 else {READY: divided},
                "users": users[NODE],
                "exports": [{"stream": subject, **ours} for subject in heard],
                "imports": [
                    {"stream": {"account": "SUBLET", "subject": KV}, "to": KV.replace("$KV", NODE_KV, 1)},
                    {"service": {"account": "SUBLET", "subject": f"$JS.API.{READS}"}, "to": f"{NODE_API}.{READS}"},
                ],
            },
            "SUBLET": {
                "jetstream": "enabled",
                "users": users[CENTRAL],
                "exports": [{"stream": KV, **nodes}, {"service": f"$JS.API.{READS}", **nodes}],
                "imports": [{"stream": {"account": "NODES", "subject": subject}} for subject in heard],
            },
        }


class FleetLeaf(NatsServer):
    """A leaf: no streams, nodes come in without a login, as on the loopback of their own pod."""

    def __init__(self, folder: Path, hub: FleetHub) -> None:
        super().__init__(store_dir=folder, start_timeout_s=30.0)
        self._hub = hub

    def _config(self) -> str:
        quoted = {name: json.dumps(str(path)) for name, path in self._paths().items()}
        remote = {"url": self._hub.leaf_url, "deny_exports": ["sublet.node.>"], "deny_imports": ["sublet.node.>"]}
        return (
            f'listen: "{HOST}:{self._port or -1}"\nlog_file: {quoted["log"]}\nports_file_dir: {quoted["ports"]}\n'
            f"leafnodes {{ reconnect: 1s, remotes: {json.dumps([remote])} }}\n"
        )


def free_port() -> int:
    """A port of loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
