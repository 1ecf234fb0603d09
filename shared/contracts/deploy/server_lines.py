"""Lines of the NATS servers' configuration that name channels."""

from collections.abc import Iterator

from shared.contracts.bus.channels import CHANNEL_OF
from shared.contracts.bus.rights import (
    API,
    CONFIG_READ,
    FACTS,
    MAPPED,
    OF_NODES,
    READERS_CALLS,
    STAYS,
    STREAMS_OF_NODES,
    TO_NODES,
)
from shared.contracts.deploy.block import Block
from shared.contracts.readiness import Readiness

SHARDED = f"{CHANNEL_OF[Readiness].prefix}.*.*"
"""Heartbeats as the hub maps them where it divides them: shard and node
(docs/facts/nats.md#mappings-hold-for-what-comes-in-by-leaves)."""


def _divided(words: str) -> str:
    """Only where heartbeats are divided."""
    return f"{{{{ if gt (int .Values.central.shards) 1 }}}}, {words}{{{{ end }}}}"


def _quoted(words: tuple[str, ...], between: str) -> str:
    return between.join(f'"{word}"' for word in words)


def hub() -> Iterator[Block]:
    """What stands in the hub's and the leaves' configuration."""
    said = ", ".join(f'{{ stream: "{subject}", accounts: [SUBLET] }}' for subject in OF_NODES)
    said += _divided(f'{{ stream: "{SHARDED}", accounts: [SUBLET] }}')
    yield Block(r'exports: \[\{ stream: "sublet\.cluster\..*', (f"exports: [{said}]",))
    heard = ", ".join(f'{{ stream: {{ account: NODES, subject: "{subject}" }} }}' for subject in OF_NODES)
    heard += _divided(f'{{ stream: {{ account: NODES, subject: "{SHARDED}" }} }}')
    yield Block(r"imports: \[\{ stream: \{ account: NODES, .*", (f"imports: [{heard}]",))
    yield Block(
        r'\{ service: \{ account: SUBLET, subject: "sublet\.cluster\..*',
        tuple(f'{{ service: {{ account: SUBLET, subject: "{subject}" }} }}' for subject in FACTS),
    )
    yield Block(
        r'\{ service: "sublet\.cluster\..*',
        tuple(f'{{ service: "{subject}", accounts: [NODES] }}' for subject in FACTS),
    )
    yield Block(
        r'\{ stream: \{ account: SUBLET, subject: "sublet\.cluster\..*',
        tuple(f'{{ stream: {{ account: SUBLET, subject: "{subject}" }} }}' for subject in TO_NODES),
    )
    yield Block(
        r'\{ stream: "sublet\.cluster\..*accounts: \[NODES\].*',
        tuple(f'{{ stream: "{subject}", accounts: [NODES] }}' for subject in TO_NODES),
    )
    reads = (CONFIG_READ, *(f"STREAM.MSG.GET.{stream}" for stream in STREAMS_OF_NODES))
    yield Block(r'\{\{- range list "DIRECT\.GET\.KV_.*', (f"{{{{- range list {_quoted(reads, ' ')} }}}}",))
    yield Block(
        r'\{ service: "\$JS\.API\.STREAM\.MSG\.GET\..*',
        tuple(f'{{ service: "{API}.STREAM.MSG.GET.{stream}", accounts: [NODES] }}' for stream in STREAMS_OF_NODES),
    )
    yield Block(r'\{\{- range list "STREAM\.INFO\..*', (f"{{{{- range list {_quoted(READERS_CALLS, ' ')} }}}}",))
    yield Block(r"deny_exports: .*", (f'deny_exports: ["{STAYS}"] # what a node says to itself stays there',))
    yield Block(r"deny_imports: .*", (f'deny_imports: ["{STAYS}"]',))
    yield from _readers()


def compose() -> Iterator[Block]:
    """What stands in the configuration of the compose deployment's server."""
    yield from _readers()
    yield Block(
        r'"\$JS\.API\.(?:STREAM\.INFO|DIRECT\.GET)\..*: .*',
        tuple(f'"{API}.{call}": "{MAPPED}.{call}"' for call in READERS_CALLS),
    )
    imports = (
        f'{{\n        service: {{account: SUBLET, subject: "{API}.{call}"}}\n        to: "{MAPPED}.{call}"\n      }}'
        for call in READERS_CALLS
    )
    one = r'\{\n *service: \{account: SUBLET, subject: "\$JS\.API\.(?:STREAM\.INFO|DIRECT\.GET)\..*\n *to: .*\n *\}'
    yield Block(one, tuple(imports))


def _readers() -> Iterator[Block]:
    """The account for who may only read, as all servers have it."""
    many = {"DIRECT.GET": ("response_type: stream, ", " # many for one")}
    exports = []
    for call in READERS_CALLS:
        how, why = many.get(call.rpartition(".")[0], ("", ""))
        exports.append(f'{{ service: "{API}.{call}", {how}accounts: [READERS] }}{why}')
    yield Block(r'\{ service: "\$JS\.API\..*accounts: \[READERS\].*', tuple(exports))
    asks = (f"{API}.INFO", *(f"{MAPPED}.{call}" for call in READERS_CALLS))
    yield Block(r'allow: \["\$JS\.API\.INFO", .*', (f"allow: [{_quoted(asks, ', ')}]",))
