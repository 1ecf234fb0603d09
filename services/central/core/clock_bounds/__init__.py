"""Clock bounds: which replica bounds an autoscaler has at which time of day and week."""
