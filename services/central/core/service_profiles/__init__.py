"""Service profiles: which services have one, which of their pods are baseline, and how they do."""
