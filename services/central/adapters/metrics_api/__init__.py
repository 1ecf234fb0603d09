"""What the metrics API is known by: the APIServices that send requests to it, and the server that asks who comes."""
