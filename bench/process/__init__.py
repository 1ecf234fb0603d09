"""What a process costs by itself: its start, and its traced steps."""
