"""Answer `sublet whatif` about the reporter: JSON questions, each answered by one call into core."""
