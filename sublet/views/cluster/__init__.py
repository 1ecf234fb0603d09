"""Output of the commands that show a whole cluster."""
