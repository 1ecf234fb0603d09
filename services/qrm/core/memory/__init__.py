"""Memory rules move limits without a kill, and say how much idle memory a cgroup gives back."""
