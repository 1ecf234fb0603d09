"""Readers make pods of manifests and API objects: QoS class, amounts, annotations, labels, containers."""
