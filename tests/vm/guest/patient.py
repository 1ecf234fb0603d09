"""`python3 patient.py WORDS…` is the command `sublet WORDS…` with ten times the patience for the start of its services.

Emulated code runs six to ten times slower than the processor below, and the services start all at once.
"""

from sublet.cli import main
from sublet.host import readiness, session

session.READY_TIMEOUT_S *= 10
readiness.HEALTHY_TIMEOUT_S *= 10

if __name__ == "__main__":
    main()
