"""A tenant that wakes when told: for every line on stdin it keeps CPUs busy for a while, and says when it began.

Between the lines it looks around now and then, as servers do: a tenant that uses exactly nothing counts its request.
"""

import os
import select
import sys
import time


def main() -> None:
    """`spinner.py THREADS BUSY_S`."""
    count, busy_s = int(sys.argv[1]), float(sys.argv[2])
    while True:
        if not select.select([sys.stdin], [], [], 0.02)[0]:
            continue
        if not sys.stdin.readline():
            return
        started = time.monotonic()
        children = []
        for _n in range(count):
            pid = os.fork()
            if pid == 0:
                while time.monotonic() < started + busy_s:
                    pass
                os._exit(0)
            children.append(pid)
        print(started, flush=True)
        for pid in children:
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
