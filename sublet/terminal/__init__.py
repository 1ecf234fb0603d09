"""What a command line has in and out beside its answer: files that are named, errors, and how they are worded."""
