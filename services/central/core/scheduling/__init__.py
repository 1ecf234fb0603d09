"""Rules of placement: which node takes a pod, how well it suits, and what the stock scheduler is told."""
