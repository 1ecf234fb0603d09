"""Chains of messages explain a pod, a CPU or a missing eviction, as a document and as text."""
