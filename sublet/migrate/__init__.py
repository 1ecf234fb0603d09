"""Migration to Sublet from another colocation system: mapping, comparison side by side, and switch-over node by
node."""
