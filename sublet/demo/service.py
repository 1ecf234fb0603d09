"""A small CPU-bound HTTP server: `python -m sublet.demo.service PORT WORK_MS WORKERS`. Every request costs the same."""

import hashlib
import os
import signal
import socket
import sys
import time

_BODY = b"x" * 1024
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"


def calibrate(work_ms: float) -> int:
    """How many hashes make `work_ms` of CPU time here; the best of several tries, so that neighbours do not count."""
    best = float("inf")
    for _ in range(20):
        started = time.process_time()
        burn(200)
        best = min(best, time.process_time() - started)
    return max(1, int(200 * work_ms / 1000 / best))


def burn(rounds: int) -> None:
    """The work of one request."""
    for _ in range(rounds):
        hashlib.sha256(_BODY).digest()


def serve(listener: socket.socket, rounds: int) -> None:
    """Take one connection at a time: whichever worker is free takes the next."""
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.settimeout(5.0)
                connection.recv(1024)
                burn(rounds)
                connection.sendall(_ANSWER)
            except OSError:
                continue


def main() -> None:
    """Fork the workers, end them all on TERM."""
    port, work_ms, count = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    rounds = calibrate(work_ms)
    listener = socket.create_server(("127.0.0.1", port), backlog=1024, reuse_port=False)
    workers = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            serve(listener, rounds)
        workers.append(pid)

    def end(_number: int, _frame: object) -> None:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    signal.pause()


if __name__ == "__main__":
    main()
