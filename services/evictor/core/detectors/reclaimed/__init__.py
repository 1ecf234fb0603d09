"""Detects that reclaimed pods ask for too much of what is offered, on the node and by zone."""
