"""Tasks that run next to the passes of qrm."""
