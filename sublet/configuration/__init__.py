"""The configuration of all nodes for its users: what is in force, what would change, and its revisions."""
