"""The embedded server carries the bus of one machine: the child process, its accounts, passwords, and their change."""
