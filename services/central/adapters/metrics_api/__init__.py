"""The APIServices that route to the metrics API, and the server that checks its clients."""
