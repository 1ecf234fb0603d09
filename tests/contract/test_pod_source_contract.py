"""The PodSource of one host: what holds resources, in order, never an empty list in place of an error."""

import pytest
from pods_rig import record

from shared.adapters.local_pods import LocalPods
from shared.errors import Unavailable
from shared.ports import PodSource


@pytest.fixture
def store(tmp_path):
    return LocalPods(tmp_path)


@pytest.fixture
def source(store) -> PodSource:
    return store


def _add(store, name, **changes):
    made = record(name)
    store.add(made)
    if changes:
        store.update_status(made.pod.uid, **changes)
    return made.pod.uid


def test_before_first_use_there_are_no_pods(source):
    assert list(source.pods()) == []
    assert source.generation() == 0


def test_pods_come_in_the_order_of_namespace_and_name(store, source):
    for name in ("web", "a", "encode"):
        _add(store, name)
    assert [pod.key for pod in source.pods()] == ["default/a", "default/encode", "default/web"]


def test_a_pod_is_there_from_pending_until_it_has_finished(store, source):
    uid = _add(store, "web")
    seen = []
    for changes in ({"phase": "Running"}, {"terminating": True}, {"phase": "Failed"}):
        seen.append([(pod.phase, pod.terminating) for pod in source.pods()])
        store.update_status(uid, **changes)
    assert seen == [[("Pending", False)], [("Running", False)], [("Running", True)]]
    assert list(source.pods()) == []


def test_every_change_changes_the_generation(store, source):
    seen = [source.generation()]
    uid = _add(store, "web")
    steps = (
        lambda: store.update_status(uid, phase="Running"),
        lambda: store.mark_terminating(uid, 5.0, "Evicted"),
        lambda: store.folder(uid).finish(),
        lambda: store.remove(uid),
    )
    seen.append(source.generation())
    for step in steps:
        step()
        seen.append(source.generation())
    assert len(set(seen)) == len(seen)


TORN = [
    *(("pod.json", content) for content in ("", "{", "[]", '{"pod": {}}', None)),
    *(("status.json", content) for content in ("", "{", "[]", '{"phase": "Flying"}', None)),
]


@pytest.mark.parametrize(("name", "content"), TORN)
def test_a_record_that_cannot_be_read_is_an_error_that_names_it_never_a_pod_less(store, source, name, content):
    good, bad = _add(store, "good"), _add(store, "bad")
    path = store.folder(bad).path / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(Unavailable, match=bad):
        source.pods()
    assert store.get(good) is not None


def test_a_record_under_another_uid_is_an_error(store, source):
    uid = _add(store, "web")
    store.folder(uid).path.rename(store.path / "abc")
    with pytest.raises(Unavailable, match="abc"):
        source.pods()


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path, source):
    (tmp_path / "pods").write_text("not a folder")
    with pytest.raises(Unavailable):
        source.pods()


def test_what_is_not_a_pods_folder_is_passed_over(store, source):
    _add(store, "web")
    (store.path / "lost+found").mkdir()
    (store.path / ".new-abc").mkdir()
    assert len(source.pods()) == 1
