"""Replica bounds by the clock, written into HorizontalPodAutoscalers that carry a schedule."""
