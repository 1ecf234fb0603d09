"""Local adapters keep and end the pods of the local runtime, where there is no API server."""
