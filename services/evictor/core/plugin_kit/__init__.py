"""Holds what several plugins need: figures of pods, and rings of samples."""
