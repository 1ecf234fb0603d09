"""Vertical autoscalers: the content of their objects, which of them work, and which pod is resized next."""
