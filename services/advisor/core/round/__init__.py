"""One round asks the policy, checks its answer, and decides sizes, memory and reasons."""
