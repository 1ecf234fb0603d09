"""The local runtime: real processes in their own cgroups, described by Kubernetes Pod documents."""
