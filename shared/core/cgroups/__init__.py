"""Layouts name the cgroups of pods, knobs their settings in one unit each."""
