"""Input and error output of the command line: named files, errors, and their wording."""
