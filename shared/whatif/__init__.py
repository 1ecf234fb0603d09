"""Questions and answers of `sublet whatif` for the rules that several services share."""
