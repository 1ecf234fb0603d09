"""Documents as nobody means them: good ones with values, keys and shapes exchanged, each made from its number."""

import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ODD: Sequence[Any] = (
    *(None, True, False, 0, -1, 2**63, 10**30, 1e308, -0.5, float("nan"), float("inf")),
    *(
        "",
        " ",
        "0",
        "null",
        "x" * 5000,
        "é\u202e\u0000",
        "\x1b]0;t\x07",
        "../../etc/passwd",
        "a/b/c",
        "1e400",
        "9" * 400,
    ),
    *("-1", "1Gi", "{}", "[", "2026-01-01T00:00:00", "NaN"),
    *([], {}, [[]], [None], {"": {}}, {"a": [{}] * 50}, ["x"] * 300, {str(n): n for n in range(300)}),
)
MOST_CHANGES = 4
DEEP = 2000


def odd_documents(good: Sequence[Mapping[str, Any]], count: int, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """So many documents, each with the number from which it can be made again."""
    for number in range(count):
        yield f"{seed}/{number}", odd_document(good, seed, number)


def odd_document(good: Sequence[Mapping[str, Any]], seed: int, number: int) -> dict[str, Any]:
    """The document of a number."""
    roll = random.Random(f"{seed}/{number}")
    document: dict[str, Any] = copy.deepcopy(dict(roll.choice(good)))
    for _ in range(roll.randint(1, MOST_CHANGES)):
        _change(document, roll)
    return document


def odd_texts(good: Sequence[Mapping[str, Any]], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """The same as bytes that are cut, doubled, overwritten and nested, too."""
    for name, document in odd_documents(good, count, seed):
        yield name, _as_bytes(document, random.Random(f"{name}/text"))


def _as_bytes(document: Mapping[str, Any], roll: random.Random) -> bytes:
    text = json.dumps(document).encode("utf-8", "surrogatepass")
    match roll.randrange(8):
        case 0:
            return text[: roll.randrange(len(text) + 1)]
        case 1:
            at = roll.randrange(len(text))
            return text[:at] + roll.randbytes(4) + text[at + 4 :]
        case 2:
            return text + text
        case 3:
            return b"[" * DEEP + text + b"]" * DEEP
        case 4:
            return roll.randbytes(roll.randrange(200))
        case 5:
            return text.replace(b'"n1"', b'"\\ud800"', 1)
        case _:
            return text


def _change(document: dict[str, Any], roll: random.Random) -> None:
    """One change somewhere below."""
    here: Any = document
    while True:
        keys: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = roll.choice(keys)
        below = here[key]
        if isinstance(below, dict | list) and below and roll.random() < 0.75:
            here = below
            continue
        match roll.randrange(5):
            case 0:
                del here[key]
            case 1 if isinstance(here, dict):
                here[roll.choice(("", "a.b/c", "x" * 300, "é", str(key)))] = copy.deepcopy(roll.choice(ODD))
            case 2 if isinstance(here, list):
                here += [below] * roll.randint(1, 20)
            case _:
                here[key] = copy.deepcopy(roll.choice(ODD))
        return
