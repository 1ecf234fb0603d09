"""The arbiter chooses who goes now: confirmed pressures, guards, budgets, order, and enough but not more."""
