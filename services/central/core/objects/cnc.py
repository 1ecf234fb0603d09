"""The entries of a CNC: the config of each kind that its node has (docs/facts/katalyst-cluster.md#what-a-cnc-says)."""

from services.central.core.strict import StrictModel


class NodeConfig(StrictModel):
    """The config that a node's CNC points to."""

    namespace: str = "default"
    name: str
    hash: str


class ConfigEntry(NodeConfig):
    """One entry of a CNC; there is one per kind of config."""

    type: str
