"""Service profiles at work: descriptors are made, filled from the bus, and named on their pods."""
