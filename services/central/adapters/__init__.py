"""Adapters access files, the bucket, the streams and the API server; only the leader writes to the last three."""
