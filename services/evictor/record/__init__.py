"""The record keeps every step of an eviction: the ledger, who writes it, what is sent from it, and refusals."""
