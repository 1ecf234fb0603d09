"""Sections of qrm's settings that are large enough for a module each."""
