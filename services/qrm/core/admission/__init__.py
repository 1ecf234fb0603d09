"""Admission decides before a pod starts whether it can run here, by arranging the node with it."""
