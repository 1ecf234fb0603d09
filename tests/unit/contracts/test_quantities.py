"""Kubernetes quantities."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.kube.quantities import format_millis, format_units, is_fraction, parse_millis, parse_units


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0), ("44k", 44_000), ("256Mi", 256 << 20), ("1Gi", 1 << 30), ("1G", 10**9),
        ("195257901056", 195257901056), ("1.5Ki", 1536), ("0.1", 1), ("100m", 1), ("1e3", 1000),
        ("1E", 10**18), ("1E3", 1000), (" 5 ", 5), (7, 7),
        (1.5, 2), ("-1", -1), ("+2", 2), (".5", 1), ("5.", 5), ("1n", 1),
    ],
    ids=str,
)  # fmt: skip
def test_units_are_whole_and_rounded_up(text: float | str, units: int) -> None:
    assert parse_units(text) == units


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("64m", True), ("0.5", True), ("1.5Ki", False), (1.5, True), ("64Mi", False), ("1000m", False), (0, False)],
)
def test_a_fraction_is_no_whole_number_of_units(text: float | str, fraction: bool) -> None:
    assert is_fraction(text) is fraction


@pytest.mark.parametrize(
    ("text", "millis"), [("1", 1000), ("250m", 250), ("0.5", 500), ("0.0001", 1), ("2", 2000), (2, 2000), ("1k", 10**6)]
)
def test_cpu_is_read_in_thousandths(text: int | str, millis: int) -> None:
    assert parse_millis(text) == millis


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "1 Gi",
        "1gi",
        "1KI",
        "0x10",
        "1,5",
        "1_000",
        "--1",
        "1e",
        "NaN",
        "inf",
        "Infinity",
        "1Mim",
        "1e999",
        None,
    ],
)
def test_what_is_no_quantity_is_refused_and_named(text: str | None) -> None:
    for parse in (parse_units, parse_millis):
        with pytest.raises(ValueError, match="quantity"):
            parse(text)  # type: ignore[arg-type] # one of them is None


@given(st.integers(0, 2**63))
def test_what_is_written_is_read_back(value: int) -> None:
    assert parse_units(format_units(value)) == value
    assert parse_millis(format_millis(value)) == value


@pytest.mark.parametrize("place", range(6))
def test_every_suffix_is_a_power_of_a_thousand_or_of_1024(place: int) -> None:
    assert parse_units(f"1{'kMGTPE'[place]}") == 1000 ** (place + 1)
    assert parse_units(f"1{'KMGTPE'[place]}i") == 1024 ** (place + 1)


@given(st.integers(0, 10**6), st.sampled_from(["", "k", "Ki", "M", "Mi"]))
def test_a_larger_number_is_never_a_smaller_quantity(number: int, suffix: str) -> None:
    assert parse_units(f"{number}{suffix}") < parse_units(f"{number + 1}{suffix}")


@given(st.decimals(0, 10**6, places=6))
def test_rounding_never_takes_away(number: Decimal) -> None:
    assert Decimal(parse_units(str(number))) - number < 1
    assert parse_units(str(number)) >= number


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (44_000, "44k"), (10**9, "1G"), (1024, "1024"), (1500, "1500")])
def test_units_are_written_as_the_api_server_does(value: int, text: str) -> None:
    assert format_units(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (2000, "2"), (250, "250m"), (2001, "2001m")])
def test_cpu_is_written_as_the_api_server_does(value: int, text: str) -> None:
    assert format_millis(value) == text
