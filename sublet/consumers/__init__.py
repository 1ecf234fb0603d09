"""Teams that subscribe: their durable consumers, their logins, and what was given up for them."""
