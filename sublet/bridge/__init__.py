"""Delivers eviction events to an HTTP endpoint: CloudEvents in binary mode, signed, retried, in order, with every
loss reported."""
