"""What-if questions of the evictor: the JSON models, and one call of the function that the service itself calls."""
