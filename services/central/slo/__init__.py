"""Koordinator's ConfigMap at work: followed by every central, and written into NodeSLO objects by the leader."""
