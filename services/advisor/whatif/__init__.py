"""Questions of `sublet whatif` about sizes, headroom and memory, each answered by the function that the advisor calls."""
