"""The ledger keeps the evictor's intents in SQLite: the file, its upkeep, and reading beside the evictor."""
