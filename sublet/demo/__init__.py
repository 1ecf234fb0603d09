"""The main job on real input: an online service and batch work share one machine, without and with Sublet."""
