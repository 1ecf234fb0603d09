"""evictor: threshold met, whom, how many now; ledger, action, event."""
