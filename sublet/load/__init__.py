"""The load of a simulated pod: CPU and memory, constant or along a curve."""
