"""Service profiles: which services have one, which of their pods are baseline, and how the services perform."""
