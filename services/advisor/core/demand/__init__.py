"""Rules estimate what tenants need, for policies to build on."""
