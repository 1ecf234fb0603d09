"""The six services. None imports another: they meet in `shared.contracts`."""
