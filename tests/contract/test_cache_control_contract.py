"""The port of cache shares in memory, on a folder that follows the kernel's rules, and on this machine's resctrl."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_resctrl import ENDED, FakeResctrl
from plain_resctrl import PlainResctrl

from services.qrm.adapters.resctrl.tree import ResctrlTree
from services.qrm.core.resctrl.hardware import Hardware
from services.qrm.core.resctrl.schemata import line_to_write
from services.qrm.core.resctrl.shares import PREFIX, CacheShare, wanted_schemata
from services.qrm.ports import CacheControl

REAL = Path("/")


@pytest.fixture(params=["fake", "plain", "kernel"])
def control(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CacheControl]:
    if request.param == "fake":
        yield FakeResctrl()
    elif request.param == "plain":
        yield PlainResctrl(tmp_path).tree
    elif os.geteuid() or not os.access(REAL / "sys/fs/resctrl/schemata", os.W_OK):
        pytest.skip("this machine has no resctrl")
    else:
        yield ResctrlTree(REAL)


def hardware(control: CacheControl) -> Hardware:
    found = control.hardware()
    assert found is not None
    return found


@pytest.fixture
def group(control: CacheControl) -> Iterator[str]:
    name = f"{PREFIX}test-{uuid.uuid4().hex[:8]}"
    control.make(name)
    yield name
    if name in control.groups():
        control.remove(name)


def test_a_new_group_has_what_this_machine_controls_and_no_tasks(control: CacheControl, group: str) -> None:
    assert group in control.groups()
    assert control.tasks(group) == frozenset()
    found, own = hardware(control), control.schemata(group) or {}
    for resource, part in (("L3", found.cache), ("MB", found.bandwidth)):
        assert part is None or own[resource].keys() == part.domains


def test_a_group_counts_among_those_that_are_taken(control: CacheControl, group: str) -> None:
    before = control.taken()
    control.remove(group)
    assert control.taken() == before - 1


def test_what_the_rules_allow_is_taken_and_read_back(control: CacheControl, group: str) -> None:
    found = hardware(control)
    wanted = wanted_schemata(CacheShare(0, 50, 50), found).values
    for resource, values in wanted.items():
        line = line_to_write(resource, values, control.schemata(group) or {}, found)
        assert line is not None
        control.write(group, line)
        assert control.last_status() == ""
    now = control.schemata(group) or {}
    assert {resource: now[resource] for resource in wanted} == wanted
    assert [line_to_write(resource, values, now, found) for resource, values in wanted.items()] == [None] * len(wanted)


def test_the_kernel_refuses_a_gap_and_says_why(control: CacheControl, group: str) -> None:
    cache = hardware(control).cache
    if cache is None or cache.mask.bit_length() < 5:
        pytest.skip("no cache to share, or too few ways of it for a gap")
    with pytest.raises(OSError, match="Invalid argument"):
        control.write(group, f"L3:{min(cache.domains)}=1{0:0>{cache.least_bits // 4 + 1}}1")
    assert control.last_status()


def test_a_task_moves_and_one_that_has_ended_is_no_error(control: CacheControl, group: str) -> None:
    control.add_task(group, os.getpid())
    control.add_task(group, ENDED)
    assert os.getpid() in control.tasks(group)


def test_a_group_that_is_gone_has_nothing(control: CacheControl, group: str) -> None:
    control.remove(group)
    assert group not in control.groups()
    assert control.schemata(group) is None


def test_a_machine_without_it_says_so(tmp_path: Path) -> None:
    absent = ResctrlTree(tmp_path)
    assert absent.hardware() is None
    assert absent.taken() == 1
    assert absent.last_status() == ""
    assert absent.groups() == []
