"""Pure decisions of the advisor: what tenants need, what pools result, what may be offered."""
