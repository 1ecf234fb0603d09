"""NATS adapters carry the bus: one connection, its streams, readers, durable consumers and configuration buckets."""
