"""A plan orders the writes to cgroups, after what each class's and pod's group shall have."""
