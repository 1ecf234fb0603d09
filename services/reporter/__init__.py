"""The reporter writes the node's object, and publishes the node's readiness."""
