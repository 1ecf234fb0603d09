"""Measurements of a tenant by the shape of its node."""
