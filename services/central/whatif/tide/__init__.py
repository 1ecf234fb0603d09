"""The what-if kinds on tide pools."""
