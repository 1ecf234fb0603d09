"""Loads of simulated pods, typed (`--load`) or written in a file: a bounded load, or refused in few words.

`FUZZ` is how many texts (100 000), `FUZZ_SEED` the seed; a failure names the seed and the number of its text.
"""

import math
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.core.pods.manifest import read_pod
from shared.errors import Refused
from sublet.load.curve import LoadCurve
from sublet.load.demand import (
    LOAD,
    MEMORY_LOAD,
    MOST_BYTES,
    MOST_CORES,
    STOP_AFTER,
    demand_of,
    loads_of,
    read_cores,
    read_memory,
)

pytestmark = pytest.mark.timeout(600)

COUNT, SEED = int(os.environ.get("FUZZ", "100000")), int(os.environ.get("FUZZ_SEED", "20261123"))
PIECES = (
    *("sine", "square", "ramp", "cube", ":", "..", "...", "0.5", "3", "500m", "512Mi", "2Gi", "1e9", "1e400", "-1"),
    *("60s", "1h", "0s", "9" * 30, "nan", "inf", "NaN", "Infinity", "", " ", "\u0663", "\u00b2", "é", "\u202e"),
    *("\x1b[2J", "\u0000", "\ud800", "\n", "E", "Ei", "0x10", "1_000", "+3"),
)
HOSTILE = {
    "long": "9" * 1_000_000,
    "long shape": "sine" * 250_000 + ":0..1:60s",
    "many parts": "sine:" * 200_000,
    "many dots": "sine:" + "." * 1_000_000 + ":60s",
    "an exponent": "1e999999999",
    "a small exponent": "1e-999999999",
    "no end of it": "sine:0..1:99999h",
    "no period": "sine:0..1:0s",
    "digits of another script": "\u0661\u0662",
    "a terminal's words": "\x1b]0;owned\x07",
    "more than all machines": "1E",
    "less than nothing": "sine:-5..-1:60s",
    "upside down": "sine:3..1:60s",
    "half a pair": "\udc80",
}
MOMENTS_S = (-1e9, 0.0, 1e-9, 0.5, 59.999, 86_400.0, 1e15)
LONGEST_WORDS = 2000
CPU_S, MEMORY_BYTES = 60, 1 << 30
Read = Callable[[str], LoadCurve]
READERS: tuple[tuple[Read, float], ...] = ((read_cores, MOST_CORES), (read_memory, MOST_BYTES))


def check_load(text: str, read: Read, most: float) -> None:
    """A load at every moment within its bounds, which can be said and read again; or refused."""
    curve, refusal = None, ""
    try:
        curve = read(text)
    except ValueError as error:
        refusal = str(error)
    assert len(refusal) <= LONGEST_WORDS
    assert refusal.isprintable(), refusal
    if curve is None:
        return
    amounts = [curve.at(moment_s) for moment_s in MOMENTS_S]
    assert all(math.isfinite(amount) and 0 <= amount <= most for amount in amounts), (text, amounts)
    assert curve.words(1).isascii()


def texts() -> Iterator[tuple[str, str]]:
    """Texts of a load's own pieces, half of them in the form of a curve."""
    for number in range(COUNT // 4):
        chance = random.Random(f"{SEED}/{number}")
        pick = chance.choices(PIECES, k=chance.randrange(1, 8))
        yield f"{SEED}/{number}", "".join(pick) if number % 2 else "{}:{}..{}:{}".format(*chance.choices(PIECES, k=4))


@pytest.mark.parametrize(("read", "most"), READERS)
def test_no_load_is_out_of_bounds_or_ends_its_reader(read: Read, most: float) -> None:
    for name, text in texts():
        try:
            check_load(text, read, most)
        except Exception as error:
            raise AssertionError(f"load {name}: {error!r}: {text!r}") from error


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_load_is_refused(name: str) -> None:
    for read, _ in READERS:
        with pytest.raises(ValueError, match=r"want|LOW") as caught:
            read(HOSTILE[name])
        assert len(str(caught.value)) <= LONGEST_WORDS


@pytest.mark.parametrize("key", [LOAD, MEMORY_LOAD, STOP_AFTER])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_load_in_a_file_refuses_its_pod(name: str, key: str) -> None:
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {key: HOSTILE[name]}},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["load"]}]},
    }  # fmt: skip
    with pytest.raises(Refused, match=r"want|LOW") as caught:
        loads_of(read_pod(document, "0f0e0d0c-0000-4000-8000-000000000001").record)
    assert len(str(caught.value)) <= LONGEST_WORDS
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("option", ["--cpu", "-c", "--vm", "--vm-bytes"])
@pytest.mark.parametrize(
    "number", ["9" * 400, "9" * 1_000_000, "513G" * 9, "\u0661", "-1", "1e9", "9999999999999999g", ""]
)
def test_a_hostile_command_of_a_known_load_refuses_its_pod(option: str, number: str) -> None:
    with pytest.raises(ValueError, match="want") as caught:
        demand_of(["stress", option, number])
    assert len(str(caught.value)) <= LONGEST_WORDS


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


@pytest.mark.parametrize("option", ["--load", "--memory-load"])
@pytest.mark.parametrize("name", [name for name, text in HOSTILE.items() if len(text) < 1000])
def test_a_hostile_load_on_the_command_line_starts_nothing(tmp_path: Path, name: str, option: str) -> None:
    env = {"PYTHONPATH": str(Path.cwd()), "SUBLET_STATE_DIR": str(tmp_path / "state"), "SUBLET_SUBSTRATE": "sim"}
    done = subprocess.run(
        [sys.executable, "-m", "sublet", "run", "-d", f"{option}={HOSTILE[name]}"], preexec_fn=bounded,
        env={**os.environ, **env}, cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    said = done.stderr.decode()
    assert done.returncode == 125, said
    assert "Traceback" not in said
    assert all(line.isprintable() and len(line) < LONGEST_WORDS for line in said.splitlines())
    assert list(tmp_path.iterdir()) == []
