"""The questions of `sublet whatif` on over-committed nodes."""

AREA = "overcommit"
