"""Lines of the NATS servers' configuration that name channels, written anew where they stand in `deploy`.

`python -m shared.contracts.bus.server_lines` does so; everything around them is written by hand.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.contracts.bus.channels import CHANNELS, SUBSCRIBERS

HUB, COMPOSE = "deploy/k8s/chart/templates/bus/config.yaml", "deploy/compose/nats.conf"

API, MAPPED = "$JS.API", "SUBLET.API"
"""What a question to JetStream is called in the account that has the streams, and in one that may ask there."""
OF_NODES = tuple(channel.subject() for channel in CHANNELS if channel.reach == "cluster" and not channel.stream)
"""State that nodes say to the whole cluster."""
FACTS = tuple(channel.subject() for channel in CHANNELS if channel.stream)
STREAMS_OF_NODES = tuple(sorted(channel.stream for channel in CHANNELS if channel.stream))
"""Of these a node reads single messages back."""
READERS_CALLS = tuple(
    f"{call}.{channel.stream}"
    for channel in CHANNELS
    if SUBSCRIBERS in channel.readers
    for call in ("STREAM.INFO", "DIRECT.GET")
)
"""What a reader of events may ask JetStream."""
CONFIG_READ = "DIRECT.GET.KV_sublet-config.$KV.sublet-config.>"
STAYS = "sublet.node.>"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a configuration that follow each other: how one of them looks, and what all of them shall be."""

    looks: str
    lines: tuple[str, ...]

    def in_place(self, text: str) -> str:
        """The text with this block for every run of such lines, as far to the right as they were.

        Raises:
            LookupError: there are none.
        """
        found, count = re.subn(rf"(?m)^(?P<indent> *)(?:{self.looks})\n(?: *(?:{self.looks})\n)*", self._lines, text)
        if not count:
            raise LookupError(f"no line like {self.looks}")
        return found

    def _lines(self, run: re.Match[str]) -> str:
        return "".join(f"{run['indent']}{line}\n" for line in self.lines)


def _quoted(words: tuple[str, ...], between: str) -> str:
    return between.join(f'"{word}"' for word in words)


def hub() -> Iterator[Block]:
    """What stands in the hub's and the leaves' configuration."""
    said = ", ".join(f'{{ stream: "{subject}", accounts: [SUBLET] }}' for subject in OF_NODES)
    yield Block(r'exports: \[\{ stream: "sublet\.cluster\..*', (f"exports: [{said}]",))
    heard = ", ".join(f'{{ stream: {{ account: NODES, subject: "{subject}" }} }}' for subject in OF_NODES)
    yield Block(r"imports: \[\{ stream: \{ account: NODES, .*", (f"imports: [{heard}]",))
    yield Block(
        r'\{ service: \{ account: SUBLET, subject: "sublet\.cluster\..*',
        tuple(f'{{ service: {{ account: SUBLET, subject: "{subject}" }} }}' for subject in FACTS),
    )
    yield Block(
        r'\{ service: "sublet\.cluster\..*',
        tuple(f'{{ service: "{subject}", accounts: [NODES] }}' for subject in FACTS),
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


def written(root: Path) -> dict[Path, str]:
    """The files as they shall be."""
    found = {}
    for name, blocks in ((HUB, hub()), (COMPOSE, compose())):
        text = (root / name).read_text()
        for block in blocks:
            text = block.in_place(text)
        found[root / name] = text
    return found


if __name__ == "__main__":
    for path, text in written(Path()).items():
        path.write_text(text)
        print(path)
