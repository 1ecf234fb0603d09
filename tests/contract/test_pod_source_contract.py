"""The PodSource of a host and of a cluster's node: what holds resources, never an empty list in place of an error."""

import pytest
from pods_rig import record

from shared.adapters.files.pods import PodsFile
from shared.adapters.local.pods import LocalPods
from shared.adapters.pod_sources import pod_source
from shared.errors import Unavailable
from shared.ports import PodSource
from shared.settings import CommonSettings


class OnHost:
    """The local runtime's pods."""

    def __init__(self, state_dir):
        self.store = LocalPods(state_dir)
        self.source = pod_source(CommonSettings(state_dir=state_dir))

    def add(self, name):
        return _add(self.store, name)

    def change(self, uid, **changes):
        self.store.update_status(uid, **changes)

    def remove(self, uid):
        self.store.remove(uid)

    def spoil(self):
        (self.store.path / "bad").mkdir()


class InCluster:
    """The pods of a node as the reporter keeps them."""

    def __init__(self, state_dir):
        self.file, self.held = PodsFile(state_dir), {}
        self.source = pod_source(CommonSettings(state_dir=state_dir, substrate="kubernetes"))

    def add(self, name):
        pod = record(name).pod
        self._put(pod)
        return pod.uid

    def change(self, uid, **changes):
        self._put(self.held[uid].model_copy(update=changes))

    def remove(self, uid):
        del self.held[uid]
        self.file.write(list(self.held.values()))

    def spoil(self):
        self.file.path.write_text("[{")

    def _put(self, pod):
        self.held[pod.uid] = pod
        self.file.write(list(self.held.values()))


@pytest.fixture(params=[OnHost, InCluster])
def place(request, tmp_path):
    return request.param(tmp_path)


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


def test_pods_come_in_the_order_of_namespace_and_name(place):
    for name in ("web", "a", "encode"):
        place.add(name)
    assert [pod.key for pod in place.source.pods()] == ["default/a", "default/encode", "default/web"]


def test_a_pod_is_there_from_pending_until_it_has_finished(place):
    uid = place.add("web")
    seen = []
    for changes in ({"phase": "Running"}, {"terminating": True}, {"phase": "Failed"}):
        seen.append([(pod.phase, pod.terminating) for pod in place.source.pods()])
        place.change(uid, **changes)
    assert seen == [[("Pending", False)], [("Running", False)], [("Running", True)]]
    assert list(place.source.pods()) == []


def test_every_change_changes_the_generation(place):
    seen = [place.source.generation()]
    uid = place.add("web")
    steps = (
        lambda: place.change(uid, phase="Running"),
        lambda: place.change(uid, terminating=True),
        lambda: place.change(uid, phase="Failed"),
        lambda: place.remove(uid),
    )
    seen.append(place.source.generation())
    for step in steps:
        step()
        seen.append(place.source.generation())
    assert len(set(seen)) == len(seen)


def test_what_cannot_be_read_is_an_error_never_a_shorter_list(place):
    place.add("web")
    place.spoil()
    with pytest.raises(Unavailable):
        place.source.pods()


def test_before_first_use_a_host_has_no_pods(source):
    assert list(source.pods()) == []
    assert source.generation() == 0


def test_before_the_first_list_a_clusters_node_knows_nothing(tmp_path):
    node = PodsFile(tmp_path)
    assert node.generation() == 0
    with pytest.raises(Unavailable, match="not written yet"):
        node.pods()
    node.write([])
    assert (list(node.pods()), node.generation() != 0) == ([], True)


def test_another_reader_sees_all_that_was_said_of_a_pod_and_nothing_is_written_twice(tmp_path):
    node, pod = PodsFile(tmp_path), record("web").pod
    node.write([pod])
    known = node.generation()
    node.write([pod.model_copy()])
    assert node.generation() == known
    assert list(PodsFile(tmp_path).pods()) == [pod]


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '[{"uid": "aa"}]', '[{"uid": "../..", "name": "web"}]'])
def test_a_list_that_cannot_be_read_is_an_error_that_names_the_file(tmp_path, text):
    node = PodsFile(tmp_path)
    node.path.write_text(text)
    with pytest.raises(Unavailable, match=r"node-pods\.json"):
        node.pods()


def test_a_folder_that_cannot_be_written_leaves_the_last_list(tmp_path):
    (tmp_path / "taken").write_text("no folder")
    with pytest.raises(Unavailable):
        PodsFile(tmp_path / "taken").write([])


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
