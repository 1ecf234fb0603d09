"""Eviction plugins, one file each; `services.evictor.core.plugin` defines the interface."""
