"""Adapters touch files, the bucket, the streams and the API server; the leader alone writes to the last three."""
