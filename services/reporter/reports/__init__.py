"""What the reporter writes besides the node's object: NodeMetrics, pods' resource status, kubelet's bindings."""
