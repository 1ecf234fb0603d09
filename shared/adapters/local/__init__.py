"""The local runtime: pods as real processes in cgroups of their own, kept and ended where there is no API server."""
