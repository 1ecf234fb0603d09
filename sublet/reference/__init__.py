"""Rules of other systems that no service follows, for `sublet whatif` and for comparison."""
