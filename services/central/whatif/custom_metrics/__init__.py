"""The what-if kinds of the area `custom_metrics`: models of JSON, and one call into core each."""
