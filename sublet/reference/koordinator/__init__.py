"""Rules of Koordinator that no service follows, for `sublet whatif` and for comparison."""
