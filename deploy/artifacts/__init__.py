"""What a release consists of: one part each, from this checkout, the same bytes at every build of a commit."""
