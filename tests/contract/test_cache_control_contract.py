"""The port of cache shares on a tree of resctrl's shape, and on this machine's where it has one."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_resctrl import PlainResctrl

from services.qrm.adapters.resctrl.tree import ResctrlTree
from services.qrm.core.isolation.cache import PREFIX
from services.qrm.ports import CacheControl

REAL = Path("/")


@pytest.fixture(params=["plain", "kernel"])
def control(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CacheControl]:
    if request.param == "plain":
        yield PlainResctrl(tmp_path).tree
    elif os.geteuid() or not os.access(REAL / "sys/fs/resctrl/schemata", os.W_OK):
        pytest.skip("this machine has no resctrl")
    else:
        yield ResctrlTree(REAL)


@pytest.fixture
def group(control: CacheControl) -> Iterator[str]:
    name = f"{PREFIX}test-{uuid.uuid4().hex[:8]}"
    control.make(name)
    yield name
    if name in control.groups():
        control.remove(name)


def test_a_new_group_has_all_that_there_is(control: CacheControl, group: str) -> None:
    assert group in control.groups()
    assert control.schemata(group) == control.whole()
    assert control.tasks(group) == frozenset()


def test_what_is_written_is_read_back(control: CacheControl, group: str) -> None:
    whole = control.whole() or {}
    domain = min(whole["L3"])
    least = (1 << control.bounds().least_ways) - 1
    control.write(group, f"L3:{domain}={least:x}")
    assert (control.schemata(group) or {})["L3"][domain] == least


def test_a_task_moves_and_one_that_has_ended_is_no_error(control: CacheControl, group: str) -> None:
    control.add_task(group, os.getpid())
    control.add_task(group, 4_194_303)
    assert os.getpid() in control.tasks(group)


def test_a_group_that_is_gone_has_nothing(control: CacheControl, group: str) -> None:
    control.remove(group)
    assert group not in control.groups()
    assert control.schemata(group) is None


def test_a_machine_without_it_says_so(tmp_path: Path) -> None:
    absent = ResctrlTree(tmp_path)
    assert absent.whole() is None
    assert absent.groups() == []
