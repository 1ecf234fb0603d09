"""Root file system detectors find too little room, and pods that use too much of it."""
