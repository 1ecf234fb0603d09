"""The entries of a CNC: which config its node has of each kind (docs/facts/katalyst-cluster.md#what-a-cnc-says)."""

from services.central.core.strict import StrictModel


class NodeConfig(StrictModel):
    """The config that a node's CNC points to."""

    namespace: str = "default"
    name: str
    hash: str


class ConfigEntry(NodeConfig):
    """One entry of a CNC: there is one for each kind of config."""

    type: str
