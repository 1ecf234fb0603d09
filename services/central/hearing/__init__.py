"""The hearing of heartbeats, where several centrals divide it among themselves."""
