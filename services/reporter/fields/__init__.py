"""Fields of the node's object: one file each, found by scanning this folder."""
