"""The machine under the demo: how idle and how fast it is, which loads fit it, and what disturbed a run."""
