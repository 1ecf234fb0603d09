"""Watermarks say how much memory the kernel wants to keep free."""

SCALE_UNIT = 10_000
"""`vm.watermark_scale_factor` counts ten-thousandths of the memory."""
WATERMARK_FACTOR = 2
"""Free memory is kept at twice the distance between the watermarks, so that the kernel's reclaim seldom wakes."""
