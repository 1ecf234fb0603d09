"""Eviction events to an HTTP endpoint: CloudEvents in binary mode, signed, retried, in order, none dropped unsaid."""
