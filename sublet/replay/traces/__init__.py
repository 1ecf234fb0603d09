"""Traces bring frames of nodes from recordings and public data, and recordings are written and read back here."""
