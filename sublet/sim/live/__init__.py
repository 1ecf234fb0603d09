"""A simulated machine in real time, with the progress of its scenario kept over restarts."""
