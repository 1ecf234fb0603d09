"""Questions about memory: limits, and the page cache that is dropped."""
