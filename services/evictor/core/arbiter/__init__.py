"""Chooses who goes now: confirmation, guards, budgets, order, and as many as suffice."""
