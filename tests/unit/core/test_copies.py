"""Copies made for a path that is asked often are those of `dataclasses.replace`."""

from dataclasses import dataclass, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures
from shared.core.copies import copier

FIGURES = st.builds(Figures, st.none() | st.floats(0, 9), st.none() | st.floats(0, 9), st.none() | st.floats(0, 9))


@given(like=FIGURES, usage=st.floats(0, 9), load=st.none() | st.floats(0, 9))
def test_a_copy_has_the_new_values_and_all_others_of_the_old_one(
    like: Figures, usage: float, load: float | None
) -> None:
    made = copier(Figures, "load5", "usage_cores")(like, load, usage)
    assert made == replace(like, usage_cores=usage, load5=load)


def test_a_copy_wants_a_value_for_each_field() -> None:
    with pytest.raises(ValueError, match="shorter"):
        copier(Figures, "load1", "load5")(Figures(), 1.0)


def test_a_field_that_is_none_is_refused_before_any_copy() -> None:
    with pytest.raises(ValueError, match="lode1"):
        copier(Figures, "lode1")


def test_a_class_of_which_slots_are_not_all_is_refused() -> None:
    @dataclass(frozen=True)
    class WithDict:
        one: int = 1

    @dataclass(frozen=True, slots=True)
    class Checked:
        one: int = 1

        def __post_init__(self) -> None:
            assert self.one

    for kind in (WithDict, Checked):
        with pytest.raises(TypeError, match=kind.__name__):
            copier(kind, "one")


def test_every_field_or_none_may_be_changed() -> None:
    assert copier(Figures)(Figures(1.0, 2.0)) == Figures(1.0, 2.0)
    every = [field.name for field in fields(Figures)]
    assert copier(Figures, *every[:-1])(Figures(), *range(len(every) - 1)) == Figures(0, 1, 2)
    assert copier(Figures, *every)(Figures(), *range(len(every))) == Figures(0, 1, 2, 3)  # type: ignore[arg-type]
