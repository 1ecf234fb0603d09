"""Detects too little room on the root file system, and pods that use too much of it."""
