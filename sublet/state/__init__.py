"""The state folder of `sublet up`: its files, their owners, and what is removed from it."""
