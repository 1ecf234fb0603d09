"""The live screen of `sublet top` on a terminal."""
