"""Intents follow the life of one eviction, the audit compares the whole history."""
