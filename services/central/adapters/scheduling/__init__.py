"""The server that schedulers come to."""
