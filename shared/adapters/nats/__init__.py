"""NATS adapters carry the bus: one connection, its streams, readers, durable consumers and configuration buckets."""

# Before anything imports the client: it loads more than is needed by itself.
from shared.adapters.nats import websockets as websockets
