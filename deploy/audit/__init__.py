"""`make audit`: what is pinned, looked up among known vulnerabilities, by the index or a list that is kept."""
