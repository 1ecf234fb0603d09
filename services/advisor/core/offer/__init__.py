"""The offer follows from a round: CPU and memory that reclaimed pods may ask for."""
