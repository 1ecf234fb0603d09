"""Lost nodes are found, marked, and their reclaimed pods evicted, by the leader alone."""
