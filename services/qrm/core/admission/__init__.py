"""Admission rules say what CPUs a container gets before any advice, and answer the same as a question."""
