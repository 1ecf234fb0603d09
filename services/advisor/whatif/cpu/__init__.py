"""Questions about CPUs: what tenants need, how large pools are, what may be offered."""
