"""The store of pods: whole or not at all, one name one pod, UIDs that stay inside, locks that tell the living."""

import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pods_rig import record
from present import present

from shared.adapters.local import pods
from shared.adapters.local.pods import LocalPods
from shared.errors import Conflict, Refused


@pytest.fixture
def store(tmp_path: Path) -> LocalPods:
    return LocalPods(tmp_path)


def _finished(store: LocalPods, name: str) -> str:
    made = record(name)
    store.add(made).finish()
    return made.pod.uid


def test_what_was_added_is_what_is_found(store: LocalPods) -> None:
    made = record("web", "sleep", "1", qos="shared_cores", cpu_limit_millis=2000)
    store.add(made)
    assert store.find("web").record == made


@pytest.mark.parametrize("name", ["web", "default/web", "pod/web", "pods/web", "pod/default/web"])
def test_a_pod_is_found_by_every_way_to_name_it(store: LocalPods, name: str) -> None:
    made = record("web")
    store.add(made)
    assert store.find(name).record.pod.uid == made.pod.uid


def test_an_unknown_name_says_what_there_is(store: LocalPods) -> None:
    store.add(record("web"))
    with pytest.raises(Refused, match="pod default/job not found; there is: default/web"):
        store.find("job")


def test_a_name_is_taken_by_one_unfinished_pod(store: LocalPods) -> None:
    store.add(record("web"))
    with pytest.raises(Conflict, match="Pending"):
        store.add(record("web"))
    assert len(store.stored()) == 1


def test_of_pods_that_have_ended_the_newest_are_kept(store: LocalPods, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "KEEP_FINISHED", 3)
    runs = record("runs")
    store.add(runs)
    ended = [_finished(store, f"job-{number}") for number in range(6)]
    store.add(record("next"))
    left = {stored.record.pod.uid for stored in store.stored()}
    assert runs.pod.uid in left
    assert left & {*ended} == {*ended[-3:]}


def test_a_finished_pod_makes_room_for_its_successor(store: LocalPods) -> None:
    old, new = _finished(store, "web"), record("web")
    store.add(new)
    assert store.get(old) is None
    assert [s.record.pod.uid for s in store.stored()] == [new.pod.uid]


def test_a_pod_that_is_given_up_while_it_is_added_leaves_nothing(store: LocalPods) -> None:
    old = _finished(store, "web")
    with pytest.raises(RuntimeError), store.adding(record("web")):
        raise RuntimeError("given up")
    assert [s.record.pod.uid for s in store.stored()] == [old]
    assert sorted(p.name for p in store.path.iterdir()) == [".generation", ".names", old]


def test_while_it_is_added_nobody_sees_it(store: LocalPods) -> None:
    with store.adding(record("web")):
        assert store.stored() == []
    assert len(store.stored()) == 1


@pytest.mark.parametrize("uid", ["..", "../x", "a/b", "", "ABC", ".names"])
def test_a_uid_that_would_leave_the_store_is_refused(store: LocalPods, uid: str) -> None:
    with pytest.raises(Refused, match="UID"):
        store.folder(uid)


def test_status_keys_are_merged_and_containers_by_name(store: LocalPods) -> None:
    made = record("web")
    store.add(made)
    store.update_status(made.pod.uid, phase="Running", containers={"main": {"pid": 7}})
    store.update_status(made.pod.uid, containers={"main": {"exit_code": 3}, "side": {"pid": 8}})
    status = present(store.get(made.pod.uid)).status
    assert (status.phase, status.containers["main"].pid, status.containers["main"].exit_code) == ("Running", 7, 3)
    assert status.containers["side"].pid == 8


def test_a_status_that_makes_no_sense_is_not_written(store: LocalPods) -> None:
    made = record("web")
    store.add(made)
    with pytest.raises(ValueError, match="phase"):
        store.update_status(made.pod.uid, phase="Flying")
    assert present(store.get(made.pod.uid)).status.phase == "Pending"


def test_the_first_reason_for_ending_a_pod_stays(store: LocalPods) -> None:
    made = record("web")
    store.add(made)
    assert store.mark_terminating(made.pod.uid, 30.0, "Evicted", "memory is short")
    assert store.mark_terminating(made.pod.uid, 1.0, "Deleted")
    status = present(store.get(made.pod.uid)).status
    assert (status.reason, status.message, status.grace_s) == ("Evicted", "memory is short", 30.0)


def test_what_has_finished_or_is_gone_cannot_be_ended(store: LocalPods) -> None:
    uid = _finished(store, "web")
    assert not store.mark_terminating(uid, 1.0, "Evicted")
    assert not present(store.get(uid)).status.terminating
    assert store.remove(uid)
    assert not store.mark_terminating(uid, 1.0, "Evicted")
    assert not store.remove(uid)
    store.update_status(uid, phase="Running")
    assert store.stored() == []


@pytest.mark.parametrize(
    ("codes", "terminating", "phase"),
    [((0, 0), False, "Succeeded"), ((0, 1), False, "Failed"), ((0, 0), True, "Failed"), ((), False, "Failed")],
    ids=["all well", "one failed", "ended by others", "never started"],
)
def test_the_last_phase_follows_from_the_exit_codes(
    store: LocalPods, codes: tuple[int, ...], terminating: bool, phase: str
) -> None:
    made = record("web")
    folder = store.add(made)
    if terminating:
        store.mark_terminating(made.pod.uid, 1.0, "Evicted")
    store.update_status(made.pod.uid, containers={f"c{n}": {"exit_code": code} for n, code in enumerate(codes)})
    folder.finish()
    assert present(store.get(made.pod.uid)).status.phase == phase
    folder.finish(reason="Lost")
    assert present(store.get(made.pod.uid)).status.reason == ("Evicted" if terminating else "")


def test_records_are_for_their_owner_only(store: LocalPods) -> None:
    folder = store.add(record("web"))
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (folder.path, folder.path / "pod.json")}
    assert list(modes.values()) == [0o700, 0o600]


def test_the_watchers_lock_is_held_by_whoever_inherits_it_and_free_after_death(store: LocalPods) -> None:
    folder = store.add(record("web"))
    assert not folder.watched()
    held = folder.lock_alive()
    with pytest.raises(BlockingIOError):
        folder.lock_alive()
    reader, writer = os.pipe()
    if not (heir := os.fork()):
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    held.close()
    assert folder.watched()
    os.close(writer)
    os.waitpid(heir, 0)
    assert not folder.watched()


def _count_up(folder: Any, container: Any, times: Any) -> None:
    for number in range(times):
        folder.update_status(containers={container: {"exit_code": number}})


def test_changes_by_several_processes_are_all_kept_and_every_reading_is_whole(store: LocalPods) -> None:
    made = record("web")
    folder = store.add(made)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_count_up, args=(folder, f"c{n}", 50)) for n in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        json.loads((folder.path / "status.json").read_text())
    for writer in writers:
        writer.join()
    assert {c.exit_code for c in present(store.get(made.pod.uid)).status.containers.values()} == {49}
    assert not [p.name for p in folder.path.iterdir() if p.name.startswith(".")]
