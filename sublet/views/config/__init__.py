"""Output of the configuration commands."""
