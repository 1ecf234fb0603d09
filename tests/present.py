"""For values that may be absent, where a test has made sure that they are not."""

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value itself; the test fails where there is none."""
    assert value is not None
    return value
