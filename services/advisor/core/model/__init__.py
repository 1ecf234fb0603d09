"""Types describe the machine, its containers and its regions; every later stage reads them."""
