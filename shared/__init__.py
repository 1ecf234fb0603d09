"""Code that the services share: contracts, pure core, ports, adapters, and the runner."""
