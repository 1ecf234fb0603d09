"""Names that a shell completes after a TAB."""
