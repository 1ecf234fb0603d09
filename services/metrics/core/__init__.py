"""The pure decisions of metrics: how raw readings become figures, what a sample says, when a pass is worth making."""
