"""What crosses between the accounts of a NATS server, as the table of channels has it."""

from shared.contracts.bus.channels import CHANNELS, SUBSCRIBERS
from shared.contracts.services import NODE_SERVICES

API, MAPPED = "$JS.API", "SUBLET.API"
"""What a question to JetStream is called in the account that has the streams, and in one that may ask there."""
_STATE = tuple(channel for channel in CHANNELS if channel.reach == "cluster" and not channel.stream)
OF_NODES = tuple(channel.subject() for channel in _STATE if channel.of_nodes)
"""State that nodes say to the whole cluster."""
TO_NODES = tuple(
    channel.subject() for channel in _STATE if not channel.of_nodes and set(channel.readers) & set(NODE_SERVICES)
)
"""State that central says, to each node what is for it."""
FACTS = tuple(channel.subject() for channel in CHANNELS if channel.stream and channel.of_nodes)
"""What nodes say and a stream keeps."""
STREAMS_OF_NODES = tuple(sorted(channel.stream for channel in CHANNELS if channel.stream and channel.of_nodes))
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
