"""Generates the page of all settings from their models: `python -m sublet.settings_page FILE` writes it."""
