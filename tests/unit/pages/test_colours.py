"""Colours: enough contrast to the ground, and classes that colour-blind readers tell apart."""

import math
from itertools import combinations

import pytest

from sublet.pages.colours import GROUND, LINES, SERIES, TEXT, Ink

Matrix = tuple[tuple[float, float, float], ...]
Rgb = tuple[float, float, float]
# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
SIGHTS: dict[str, Matrix] = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LEAST_APART = 12.0
"""Of CIE 1976: two patches beside each other are told apart from 2.3 on; thin lines need several times that."""
CLASSES = ("shared", "reclaimed", "dedicated", "system", "lack")


def linear(colour: str) -> Rgb:
    def one(at: int) -> float:
        value = int(colour[at : at + 2], 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return one(1), one(3), one(5)


def luminance(colour: str) -> float:
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """As WCAG 2 has it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, sight: Matrix) -> Rgb:
    seen = linear(colour)
    r, g, b = (min(max(sum(m * c for m, c in zip(row, seen, strict=True)), 0.0), 1.0) for row in sight)

    def bent(t: float) -> float:
        return float(t ** (1 / 3)) if t > 0.008856 else 7.787 * t + 16 / 116

    x = bent((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047)
    y = bent(0.2126 * r + 0.7152 * g + 0.0722 * b)
    z = bent((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def shade(ink: Ink, ground: str) -> str:
    return ink.dark if ground == "dark" else ink.light


@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_classes_are_told_apart(sight: str, ground: str) -> None:
    seen = {name: lab(shade(SERIES[name], ground), SIGHTS[sight]) for name in CLASSES}
    near = {(a, b): math.dist(seen[a], seen[b]) for a, b in combinations(CLASSES, 2)}
    assert {pair: distance for pair, distance in near.items() if distance < LEAST_APART} == {}


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_lines_stand_out_from_the_ground(ground: str) -> None:
    behind = shade(GROUND, ground)
    assert {n: c for n, i in SERIES.items() if (c := contrast(shade(i, ground), behind)) < 3} == {}


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_text_can_be_read_on_the_ground_and_on_a_panel(ground: str) -> None:
    for behind in (shade(GROUND, ground), shade(LINES["panel"], ground)):
        assert {n: c for n, i in TEXT.items() if (c := contrast(shade(i, ground), behind)) < 4.5} == {}
