"""Questions of `sublet whatif` about sizes, headroom and memory, each answered by a function of the advisor."""
