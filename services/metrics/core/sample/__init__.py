"""Sample: the message of one pass, from the figures of all targets to a length that its readers accept."""
