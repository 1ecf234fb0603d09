"""Output of the commands: pure functions from answers to text, tables and JSON."""
