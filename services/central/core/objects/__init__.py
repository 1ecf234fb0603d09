"""Objects of the API server, reduced to what decisions need; and the companions that each Node should have."""
