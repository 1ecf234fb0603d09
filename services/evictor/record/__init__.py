"""Records every step of an eviction: the journal of intents, the outbox of their messages, and refusals."""
