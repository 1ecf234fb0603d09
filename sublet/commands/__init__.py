"""The commands, one file each with `register(app)`. They import what they need when they run: `--help` stays quick."""
