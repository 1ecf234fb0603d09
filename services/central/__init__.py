"""central: which nodes are lost; streams, configuration, readiness ledger."""
