"""The core decides which CPUs each pool and pod gets, in which order they are written, and what is reported."""
