"""Objects of the API server as the rules of recommendation have them, each read by one door that never throws."""
