"""`sublet up`: everything that runs Sublet on one machine, and takes it away again."""
