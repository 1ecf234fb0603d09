"""The frontier of offer and violations: policies and peers at many settings, so that they meet at equal violations."""
