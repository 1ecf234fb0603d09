"""A tenant that answers requests: at moments drawn by chance each of its workers has some CPU time to spend.

It prints how long each request took, in seconds, from the moment at which it was due until its last worker was done.
"""

import os
import random
import sys
import time


def _spend(cpu_s: float) -> None:
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass


def _worker(asked: int, done: int, cpu_s: float) -> None:
    while os.read(asked, 1):
        _spend(cpu_s)
        os.write(done, b".")
    os._exit(0)


def main() -> None:
    """`request.py WORKERS CPU_S MEAN_GAP_S SPAN_S SEED`."""
    workers, (cpu_s, mean_gap_s, span_s), seed = int(sys.argv[1]), map(float, sys.argv[2:5]), int(sys.argv[5])
    chance, (done_out, done_in) = random.Random(seed), os.pipe()
    asking: list[int] = []
    for _ in range(workers):
        out, into = os.pipe()
        if os.fork() == 0:
            os.close(into)
            for other in asking:
                os.close(other)
            _worker(out, done_in, cpu_s)
        os.close(out)
        asking.append(into)
    due_s = time.monotonic()
    end_s = due_s + span_s
    while due_s < end_s:
        time.sleep(max(0.0, due_s - time.monotonic()))
        for into in asking:
            os.write(into, b".")
        left = workers
        while left:
            left -= len(os.read(done_out, left))
        print(time.monotonic() - due_s)
        # From the end of the answer: requests that queue behind a slow one would count its slowness again.
        due_s = time.monotonic() + chance.expovariate(1 / mean_gap_s)


if __name__ == "__main__":
    main()
