"""What the commands about pods ask before they start one, and what they show of it."""
