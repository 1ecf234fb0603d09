"""Read the bytes over the node's network interfaces; the kernel keeps no such account for a cgroup.

Read by the first process, whose network is the node's: an agent in a container has another one; a generated host has
no first process and one file for all. Loopback, and the host's ends of containers' links (`veth…`), carry what never
leaves the node or is counted on another interface again.
"""

from services.metrics.core.figures.figure import Rate
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

_NOT_OUTSIDE = ("lo", "veth", "docker", "br-", "cni", "cali", "flannel", "virbr", "ifb", "dummy", "tun", "tap", "lxc")
_RECEIVED, _SENT = 0, 8


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    text = host.text("proc/1/net/dev") or host.text("proc/net/dev")
    if text is None:
        return {}
    rows = [line.partition(":") for line in text.splitlines() if ":" in line]
    columns = [rest.split() for name, _, rest in rows if not name.strip().startswith(_NOT_OUTSIDE)]
    return {
        "network_received_bytes": sum(int(row[_RECEIVED]) for row in columns),
        "network_sent_bytes": sum(int(row[_SENT]) for row in columns),
    }


SOURCE = Source(
    {
        "node": (
            Rate("network_receive_bytes_per_s", of="network_received_bytes"),
            Rate("network_transmit_bytes_per_s", of="network_sent_bytes"),
        )
    },
    _read,
    cost="moderate",
    gates={"node": Gate(4.0)},
)
