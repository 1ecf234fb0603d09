"""The questions of `sublet whatif` that central's rules answer: models of JSON, and one call into core each."""
