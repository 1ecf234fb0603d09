"""The only vocabulary the services have in common: messages, subjects, ids, quantities."""
