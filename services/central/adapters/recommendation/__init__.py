"""What recommendations write: statuses, checkpoints, requests of pods that run."""
