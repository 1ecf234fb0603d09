"""The kernel's control of caches and memory bandwidth."""
