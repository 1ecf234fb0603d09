"""Rules decide what the bus keeps and trusts: addresses, tokens, durable consumers, room in a stream, the newest."""
