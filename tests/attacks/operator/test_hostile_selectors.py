"""Selectors of config objects and of `--selector`, as nobody means them: refused in few words, others work on.

`FUZZ` is how many texts (100 000), `FUZZ_SEED` the seed; a failure names the seed and the number of its text.
"""

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_documents import ODD

from services.central.core.kcc.match import match
from services.central.core.kcc.selectors import parse_selector
from services.central.core.kcc.targets import KccTarget, check_target
from services.central.core.rollout.config_documents import target_of
from shared.errors import Refused
from sublet.pods.label_selector import read_selector

pytestmark = pytest.mark.timeout(600)

COUNT, SEED = int(os.environ.get("FUZZ", "100000")), int(os.environ.get("FUZZ_SEED", "20261123"))
PIECES = (
    *(
        "a",
        "zone",
        "example.org/pool",
        "=",
        "==",
        "!=",
        "!",
        " in ",
        " notin ",
        "(",
        ")",
        ",",
        ">",
        "<",
        "5",
        " ",
        "\n",
    ),
    *("9" * 25, "x" * 64, "é", "\u202e", "\x1b]0;t\x07", "\u0000", "\ud800", "-", "_", "/", "a.b/c/d"),
)
LARGE = {
    "long key": "x" * 1_000_000,
    "long prefix": "a-" * 500_000 + "!/x",
    "many dots": "a." * 500_000 + "/x=1",
    "many requirements": "a=b," * 250_000 + "a",
    "many values": "a in (" + "v," * 500_000 + ")",
    "deep": "a in " + "(" * 1_000_000,
    "closed only": ")" * 1_000_000,
    "blank": " " * 1_000_000,
    "commas": "," * 1_000_000,
    "not not": "!" * 1_000_000,
    "long number": "a>" + "9" * 1_000_000,
    "far east": "漢" * 1_000_000,
}
LONGEST_WORDS = 6000
LABELS = {"a": "5", "zone": "b"}
OTHER = KccTarget(name="other", label_selector="zone=b", priority=0)
CPU_S, MEMORY_BYTES = 60, 1 << 30


def target(selector: Any, **ephemeral: Any) -> dict[str, Any]:
    """A config object with it."""
    meta = {"namespace": "default", "name": "odd", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": meta, "spec": {"nodeLabelSelector": selector, "ephemeralSelector": ephemeral}}


def check_object(document: dict[str, Any]) -> None:
    """It is read or refused; others get their nodes as if it were not there, unless it claims the same."""
    seen = target_of(document)
    words = [seen.problem]
    try:
        check_target(seen.target, {0: ["a", "zone"]}, [OTHER, seen.target])
    except Refused as refusal:
        words.append(str(refusal))
    # What cannot be read takes no node from another.
    assert not seen.problem or OTHER in match("n1", LABELS, [OTHER, seen.target]).matched
    assert all(len(text) <= LONGEST_WORDS for text in words), [len(text) for text in words]
    assert all(text.isprintable() for text in words), words


def texts() -> Iterator[tuple[str, str]]:
    """Texts of a selector's own pieces."""
    for number in range(COUNT // 4):
        chance = random.Random(f"{SEED}/{number}")
        yield f"{SEED}/{number}", "".join(chance.choices(PIECES, k=chance.randrange(1, 12)))


def test_no_selector_of_a_config_object_ends_its_reader() -> None:
    for name, text in texts():
        try:
            check_object(target(text))
        except Exception as error:
            raise AssertionError(f"selector {name}: {error!r}: {text!r}") from error


def test_no_selector_that_is_typed_ends_its_command() -> None:
    for name, text in texts():
        words = ""
        try:
            read_selector(text)
        except Refused as refusal:
            words = str(refusal)
        except Exception as error:
            raise AssertionError(f"selector {name}: {error!r}: {text!r}") from error
        assert words.isprintable(), name


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_a_selector_that_is_no_text_is_refused_alone(odd: int) -> None:
    check_object(target(ODD[odd]))
    check_object(target(None, nodeNames=ODD[odd], lastDuration="1h"))
    check_object(target(None, nodeNames=["n1"], lastDuration=ODD[odd]))


@pytest.mark.parametrize("name", LARGE)
def test_a_large_selector_is_refused_at_once_and_in_few_words(name: str) -> None:
    for read in (parse_selector, read_selector):
        with pytest.raises(Refused) as caught:
            read(LARGE[name])
        assert len(str(caught.value)) <= LONGEST_WORDS
    check_object(target(LARGE[name]))


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


TYPED = {
    "many values": ",".join(["a in (" + "v," * 60 + ")"] * 20),
    "a terminal's words": "\x1b]0;t\x07=\udc80",
    "deep": "(" * 4000,
    "long": "=" * 100_000,
}


@pytest.mark.parametrize("name", TYPED)
def test_a_hostile_selector_on_the_command_line_is_refused_in_few_words(tmp_path: Path, name: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path.cwd()), "SUBLET_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-m", "sublet", "get", "pods", "-l", TYPED[name]],
        env=env, cwd=tmp_path, preexec_fn=bounded, capture_output=True, check=False,
    )  # fmt: skip
    said = done.stderr.decode()
    assert done.returncode == (0 if name == "many values" else 2), said
    assert "Traceback" not in said
    assert all(line.isprintable() and len(line) < LONGEST_WORDS for line in said.splitlines())
