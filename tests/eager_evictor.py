"""Settings of an evictor that acts again at once, for runs in which pressure comes back on purpose.

The guards against a node that evicts on and on are not what such a run tries.
"""

NO_BOUND = {"limit": 1_000_000}
EAGER = {
    "evictor": {
        "cooling_s": 0.05,
        "evictions_per_minute": 600,
        "max_without_relief": 100,
        "condition_transition_s": 0,
        "budgets": {"node": NO_BOUND, "namespace": NO_BOUND, "owner": NO_BOUND},
    }
}
