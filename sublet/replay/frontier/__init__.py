"""The frontier of offer and violations: policies and peers at many settings, so that they can be compared at equal
violations."""
