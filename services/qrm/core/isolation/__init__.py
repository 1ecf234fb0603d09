"""Isolation rules: what groups get besides CPU sets, weights and limits, and how pods' annotations change it."""
