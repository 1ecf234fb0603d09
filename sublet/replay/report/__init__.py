"""Reports show a comparison: as a table, a document, and a page with curves."""
