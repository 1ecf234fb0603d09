"""Rules of over-committed nodes: ratios, figures, whose config rules, what the API server is to show, and who fits."""
