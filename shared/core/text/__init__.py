"""Readers check text and documents from outside: JSON, annotations, what a person wrote."""
