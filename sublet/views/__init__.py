"""How the commands show what they learned: pure functions from answers to text, tables and JSON."""
