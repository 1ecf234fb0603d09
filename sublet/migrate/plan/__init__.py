"""What the configuration of another system comes to here, value by value, and the values of the chart for it."""
