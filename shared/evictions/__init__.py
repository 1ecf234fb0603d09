"""One procedure evicts pods, for a node's evictor and for central: intent, rehearsal, call, event."""
