"""The pure decisions of the reporter: the node's object, how its offer moves, and the node's readiness."""
