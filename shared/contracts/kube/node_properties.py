"""Names of the properties in which a node's object says what runs there.

A property has a quantity or values (docs/facts/katalyst-cluster.md#customnoderesource).
"""

AGENT_VERSION = "agent_version"
"""The version of Sublet on the node."""
AGENT_REVISION = "agent_revision"
"""The revision that it was built of; there only where the build recorded one."""
