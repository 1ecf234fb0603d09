"""The state folder of `sublet up`: which files lie in it, who owns it, and what is removed from it."""
