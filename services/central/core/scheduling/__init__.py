"""Rules of placement: which node accepts a pod, how well it suits, and what the stock scheduler is told."""
