"""A cluster joins all controllers: mirrors of its objects, passes over them, and the objects that each node has."""
