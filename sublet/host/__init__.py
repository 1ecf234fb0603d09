"""`sublet up`: everything that runs Sublet on one machine, and removes it again."""
