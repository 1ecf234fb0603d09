"""Pure decisions of metrics: figures from raw readings, the contents of a sample, and when a pass is worthwhile."""
