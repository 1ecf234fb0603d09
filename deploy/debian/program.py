#!/usr/lib/sublet/bin/python -P
"""The command, by the environment that the package brings."""

from sublet.cli import main

main()
