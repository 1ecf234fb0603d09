"""Pages show figures, tables and charts in one design; each is one self-contained file."""
