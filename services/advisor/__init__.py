"""The advisor decides how large each pool should be, and what may be offered to reclaimed pods."""
