"""Eviction plugins, one file each; see `services.evictor.core.plugin` for what one is."""
