"""The page of all settings, made from their models: `python -m sublet.settings_page FILE` writes it."""
