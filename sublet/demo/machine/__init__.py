"""The machine of the demo: how idle and fast it is, which loads fit it, and what disturbed a run."""
