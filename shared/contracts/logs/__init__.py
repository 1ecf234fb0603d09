"""Log lines as others read them: names of events and the keys of a line."""
