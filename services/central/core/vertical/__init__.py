"""Vertical autoscalers: what their objects say, which of them work, and which pod gets new figures next."""
