"""Formats of public traces and of exports, one file each: how its first line looks, and how its rows are read."""
