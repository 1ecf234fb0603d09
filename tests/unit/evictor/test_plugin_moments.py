"""The moments in which plugins are tested: whatever figure somebody else's plugin watches, it is shown there."""

import pytest
from plugin_world import bound, busy, idle, view
from pydantic import BaseModel

LEFT_OUT = {"extra", "figure_ages_s"}
"""Of what a name may stand in them, nobody can know."""
LIMITS = {"cpu_limit_cores", "memory_limit_bytes"}
"""A limit that is not set is absent."""


def unsaid(reading: BaseModel) -> set[str]:
    return type(reading).model_fields.keys() - reading.model_fields_set - LEFT_OUT


@pytest.mark.parametrize("low", [False, True])
def test_every_figure_of_a_node_its_pools_and_a_container_is_shown(low: bool) -> None:
    pod = busy(bound("batch")) if low else idle(bound("batch"))
    sample = view([pod], low=low).sample
    assert unsaid(sample.node_reading) == set()
    assert [unsaid(numa) for numa in sample.numas] == [set()]
    assert [unsaid(one) for one in (*pod.containers, *sample.pools)] == [LIMITS, LIMITS]
