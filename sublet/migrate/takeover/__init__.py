"""Switches nodes one by one from another agent to Sublet, and back, without restarting any pod."""
