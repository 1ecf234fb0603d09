"""Pages show figures, tables and charts in one design; each is one file that needs nothing from elsewhere."""
