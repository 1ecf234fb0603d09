"""The live page: what nodes say on the bus, as one picture of the cluster that moves. It reads and never writes."""
