"""Answer `sublet whatif` about qrm: JSON questions, each answered by one call into core."""
