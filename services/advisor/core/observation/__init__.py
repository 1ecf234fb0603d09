"""Readers make the view of a sample and an allocation."""
