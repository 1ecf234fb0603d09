"""Fields make the node's object: one file each, with one public object `FIELD`, found by scanning this folder."""
