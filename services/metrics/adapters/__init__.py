"""Adapters of metrics read the host: passes over the targets, the tripwire, pressure triggers; one shows the sample."""
