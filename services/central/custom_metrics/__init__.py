"""The custom and external metrics API: nodes' figures come in, and the API server's front proxy asks for them."""
