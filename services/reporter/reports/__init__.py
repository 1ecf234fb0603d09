"""What the reporter says beside the node's object: NodeMetrics, pods' resource status, what kubelet binds."""
