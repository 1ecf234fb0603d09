"""The controller of configuration: companions, each node's settings, and the statuses of config objects."""
