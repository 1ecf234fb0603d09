"""The ledger stores the evictor's intents in SQLite: the file, its upkeep, and reading it next to the evictor."""
