"""How long a thread has waited for a CPU, from what the kernel writes and from what somebody else may have written."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.adapters.host.cpu_wait import OWN, waited_s

BUSY = "while True: pass"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1000 2500000000 7\n", 2.5),
        ("0 0 0\n", 0.0),
        ("", 0.0),
        ("1000\n", 0.0),
        ("1000 many 7\n", 0.0),
        ("\x00\xff", 0.0),
        ("1 " * 10_000_000, 1e-9),
    ],
)
def test_what_cannot_be_read_is_no_wait(tmp_path: Path, text: str, seconds: float) -> None:
    record = tmp_path / "schedstat"
    record.write_text(text)
    assert waited_s(record) == seconds
    assert waited_s(tmp_path / "none") == 0.0


@pytest.fixture
def crowded_cpu() -> Iterator[None]:
    """This thread shares one CPU with a process that never stops."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    rival = subprocess.Popen([sys.executable, "-S", "-c", BUSY])
    yield
    os.sched_setaffinity(0, before)
    rival.kill()
    rival.wait()


@pytest.mark.skipif(not OWN.exists(), reason="this kernel does not count how long threads wait (CONFIG_SCHED_INFO)")
@pytest.mark.usefixtures("crowded_cpu")
def test_the_kernel_counts_what_a_rival_takes() -> None:
    began_s, worked_s, before_s = time.monotonic(), time.thread_time(), waited_s()
    while time.thread_time() - worked_s < 0.2:
        pass
    used_s, waited = time.thread_time() - worked_s, waited_s() - before_s
    lasted_s = time.monotonic() - began_s
    # What is neither work nor wait for a CPU was taken by a hypervisor: less than both, on any machine that is usable.
    assert 0 < waited <= lasted_s - used_s + 0.01
