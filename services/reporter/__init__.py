"""reporter: what the node's object should say, and the node's heartbeat."""
