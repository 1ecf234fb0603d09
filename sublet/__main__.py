"""`python -m sublet` is the command `sublet`."""

from sublet.cli import main

main()
