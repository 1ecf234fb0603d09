"""Checks judge a node by its kernel, cgroups and neighbours, as its files and processes show them."""
