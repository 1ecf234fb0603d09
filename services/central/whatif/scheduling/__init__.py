"""The questions of `sublet whatif` on placement."""

AREA = "scheduling"
