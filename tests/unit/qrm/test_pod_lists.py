"""Lists of pods' groups: one that came or went is seen at once, one that took another's place within two seconds."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups

from services.qrm.adapters.kernel.pod_lists import LIST_AGAIN_S, PodLists

HOME = "kubepods/besteffort"


@pytest.fixture
def plain(tmp_path: Path) -> PlainCgroups:
    made = PlainCgroups(tmp_path)
    made.add("kubepods")
    made.add(HOME)
    made.add(f"{HOME}/pod1")
    return made


@pytest.fixture
def listed(plain: PlainCgroups, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed. The kernel's folders say no more than their number and how many lie in them."""
    found: list[str] = []
    inodes: Callable[[str], dict[str, int]] = plain.cgroups.inodes

    def counted(group: str) -> dict[str, int]:
        found.append(group)
        return inodes(group)

    monkeypatch.setattr(plain.cgroups, "mark", lambda group: len(inodes(group)))
    monkeypatch.setattr(plain.cgroups, "inodes", counted)
    return found


def test_what_came_or_went_is_seen_by_the_next_look(plain: PlainCgroups, listed: list[str]) -> None:
    lists = PodLists(plain.cgroups, [HOME])
    assert [set(one) for one in lists.members(0.0)] == [{"pod1"}]
    plain.add(f"{HOME}/pod2")
    assert [set(one) for one in lists.members(0.1)] == [{"pod1", "pod2"}]
    shutil.rmtree(plain.folder(f"{HOME}/pod1", "cpuset"))
    assert [set(one) for one in lists.members(0.2)] == [{"pod2"}]
    assert len(listed) == 3


def test_an_unchanged_home_is_listed_once_in_two_seconds_and_its_list_stays_the_same_object(
    plain: PlainCgroups, listed: list[str]
) -> None:
    lists = PodLists(plain.cgroups, [HOME])
    looks = [lists.members(look * LIST_AGAIN_S / 10) for look in range(20)]
    assert listed == [HOME] * 2
    assert all(look[0] is looks[0][0] for look in looks)


def test_a_group_that_took_anothers_place_is_seen_by_the_next_list(plain: PlainCgroups, listed: list[str]) -> None:
    lists = PodLists(plain.cgroups, [HOME])
    lists.members(0.0)
    kept = plain.folder(HOME, "cpuset").with_name("kept")  # so that no new folder gets its inode
    shutil.move(plain.folder(f"{HOME}/pod1", "cpuset"), kept)
    plain.add(f"{HOME}/pod2")
    assert set(lists.members(LIST_AGAIN_S / 2)[0]) == {"pod1"}, "the folder holds as many as before"
    assert set(lists.members(LIST_AGAIN_S)[0]) == {"pod2"}
    assert len(listed) == 2


def test_without_the_time_every_home_is_listed_and_a_home_that_is_not_there_has_nothing(
    plain: PlainCgroups, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = PodLists(plain.cgroups, [HOME, "kubepods/burstable"])
    for _ in range(3):
        assert [set(one) for one in lists.members()] == [{"pod1"}, set()]
    assert len(listed) == 6
    monkeypatch.setattr(plain.cgroups, "mark", lambda _group: None)
    for look in range(3):
        lists.members(look / 10)
    assert len(listed) == 12, "no mark tells that nothing has changed"
