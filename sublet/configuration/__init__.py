"""The configuration of all nodes as a person works with it: what is in force, what would change, and its revisions."""
