"""Translates another system's configuration, value by value, into values of the chart."""
