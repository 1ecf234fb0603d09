"""Koordinator's mid resources: what tenants asked for and, by their past, do not use."""
