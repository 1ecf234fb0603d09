"""Node by node from another agent to Sublet, and back, without the restart of any pod."""
