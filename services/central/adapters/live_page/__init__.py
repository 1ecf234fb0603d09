"""The live page over HTTP."""
