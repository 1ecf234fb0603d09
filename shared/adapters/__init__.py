"""The real implementations of the ports. Only a service's `main` and the command line build one."""
