"""What of the evictor touches the world beside its ledger."""
