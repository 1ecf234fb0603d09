"""Watermarks say how much memory the kernel wants to keep free."""

SCALE_UNIT = 10_000
"""`vm.watermark_scale_factor` counts ten-thousandths of the memory."""
WATERMARK_FACTOR = 2
"""Twice the distance of the watermarks is left free, so that the kernel's reclaim seldom wakes."""
