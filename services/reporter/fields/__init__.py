"""Report fields: parts of the node's object, one file each, found by scanning this folder for `FIELD`."""
