"""Lines of `deploy` that follow from the tables of channels and services."""
