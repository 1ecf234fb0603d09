"""What a simulated pod asks of its machine: CPU and memory, steady or along a curve."""
