"""A whole node in the emulated machine: systemd, containerd, runc and kubelet; its control plane runs outside of it."""
