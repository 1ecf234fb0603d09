"""Kinds declare configs, selectors and canaries say which node gets which object."""
