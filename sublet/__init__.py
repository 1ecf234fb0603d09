"""The command line, the supervisor of one host, the simulator."""
