"""What a workload's containers should ask for: their use over days, what killed them, and what their owner allows."""
