"""The ports name what central's app and its controllers need of the world; `main` builds an adapter for each."""
