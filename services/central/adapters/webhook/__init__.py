"""What the webhook needs of the API server beside a certificate."""
