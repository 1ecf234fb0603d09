"""Moving to Sublet from another colocation system: what maps to what, a comparison side by side, node by node."""
