"""What goes on beside the passes of qrm."""
