"""resctrl: which part of the caches and of the memory bandwidth a class of pods may use."""
