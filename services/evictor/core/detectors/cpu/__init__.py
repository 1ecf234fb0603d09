"""CPU detectors find load, suppression and busy NUMA nodes, and score the victims."""
