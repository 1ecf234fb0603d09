"""Config objects become each node's entry in the bucket, and get their status."""
