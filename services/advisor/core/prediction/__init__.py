"""Predictors remember the past: histograms, and a learned bound."""
