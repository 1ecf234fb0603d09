"""Isolation rules say what groups get beside CPU sets, weights and limits, and which words of a pod change that."""
