"""The local runtime: runs pods as real processes in their own cgroups if there is no API server."""
