"""What all answers to the API server's admission reviews have in common."""
