"""The line of an author's file that an error came from, whatever the author raises from what."""

import pytest

from sublet.laws.place import line_at_work


def raised(cause: BaseException, error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


def test_an_error_that_is_its_own_cause_has_its_line() -> None:
    error = ValueError("x")
    assert line_at_work(raised(error, error), __file__) == f"{__file__}:10"


def test_errors_that_are_each_others_cause_have_a_line() -> None:
    first, second = ValueError("x"), KeyError("y")
    raised(second, first)
    assert line_at_work(raised(first, second), __file__) == f"{__file__}:10"
