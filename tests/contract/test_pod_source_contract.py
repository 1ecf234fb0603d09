"""The PodSource of a host and of a cluster's node: what holds resources, never an empty list in place of an error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pods_rig import record

from shared.adapters.files.pods import PodsFile
from shared.adapters.local.pods import LocalPods
from shared.adapters.pod_sources import pod_source
from shared.contracts.pod import Pod
from shared.errors import Unavailable
from shared.ports import PodSource
from shared.settings import CommonSettings


class OnHost:
    """The local runtime's pods."""

    def __init__(self, state_dir: Path) -> None:
        self.store = LocalPods(state_dir)
        self.source = pod_source(CommonSettings(state_dir=state_dir))

    def add(self, name: str) -> str:
        return _add(self.store, name)

    def change(self, uid: str, **changes: Any) -> None:
        self.store.update_status(uid, **changes)

    def remove(self, uid: str) -> None:
        self.store.remove(uid)

    def spoil(self) -> None:
        (self.store.path / "bad").mkdir()


class InCluster:
    """The pods of a node as the reporter keeps them."""

    def __init__(self, state_dir: Path) -> None:
        self.file = PodsFile(state_dir)
        self.held: dict[str, Pod] = {}
        self.source = pod_source(CommonSettings(state_dir=state_dir, substrate="kubernetes"))

    def add(self, name: str) -> str:
        pod = record(name).pod
        self._put(pod)
        return pod.uid

    def change(self, uid: str, **changes: Any) -> None:
        self._put(self.held[uid].model_copy(update=changes))

    def remove(self, uid: str) -> None:
        del self.held[uid]
        self.file.write(list(self.held.values()))

    def spoil(self) -> None:
        self.file.path.write_text("[{")

    def _put(self, pod: Pod) -> None:
        self.held[pod.uid] = pod
        self.file.write(list(self.held.values()))


@pytest.fixture(params=[OnHost, InCluster])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> InCluster | OnHost:
    made: InCluster | OnHost = request.param(tmp_path)
    return made


@pytest.fixture
def store(tmp_path: Path) -> LocalPods:
    return LocalPods(tmp_path)


@pytest.fixture
def source(store: LocalPods) -> PodSource:
    return store


def _add(store: LocalPods, name: str, **changes: Any) -> str:
    made = record(name)
    store.add(made)
    if changes:
        store.update_status(made.pod.uid, **changes)
    return made.pod.uid


def test_pods_come_in_the_order_of_namespace_and_name(place: InCluster | OnHost) -> None:
    for name in ("web", "a", "encode"):
        place.add(name)
    assert [pod.key for pod in place.source.pods()] == ["default/a", "default/encode", "default/web"]


def test_a_pod_is_there_from_pending_until_it_has_finished(place: InCluster | OnHost) -> None:
    uid = place.add("web")
    seen = []
    for changes in ({"phase": "Running"}, {"terminating": True}, {"phase": "Failed"}):
        seen.append([(pod.phase, pod.terminating) for pod in place.source.pods()])
        place.change(uid, **changes)
    assert seen == [[("Pending", False)], [("Running", False)], [("Running", True)]]
    assert list(place.source.pods()) == []


def test_every_change_changes_the_generation(place: InCluster | OnHost) -> None:
    seen = [place.source.generation()]
    uid = place.add("web")
    steps: tuple[Callable[[], object], ...] = (
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


def test_what_cannot_be_read_is_an_error_never_a_shorter_list(place: InCluster | OnHost) -> None:
    place.add("web")
    place.spoil()
    with pytest.raises(Unavailable):
        place.source.pods()


def test_before_first_use_a_host_has_no_pods(source: LocalPods) -> None:
    assert list(source.pods()) == []
    assert source.generation() == 0


def test_before_the_first_list_a_clusters_node_knows_nothing(tmp_path: Path) -> None:
    node = PodsFile(tmp_path)
    assert node.generation() == 0
    with pytest.raises(Unavailable, match="not written yet"):
        node.pods()
    node.write([])
    assert (list(node.pods()), node.generation() != 0) == ([], True)


def test_another_reader_sees_all_that_was_said_of_a_pod_and_nothing_is_written_twice(tmp_path: Path) -> None:
    node, pod = PodsFile(tmp_path), record("web").pod
    node.write([pod])
    known = node.generation()
    node.write([pod.model_copy()])
    assert node.generation() == known
    assert list(PodsFile(tmp_path).pods()) == [pod]


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '[{"uid": "aa"}]', '[{"uid": "../..", "name": "web"}]'])
def test_a_list_that_cannot_be_read_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    node = PodsFile(tmp_path)
    node.path.write_text(text)
    with pytest.raises(Unavailable, match=r"node-pods\.json"):
        node.pods()


def test_a_folder_that_cannot_be_written_leaves_the_last_list(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("no folder")
    with pytest.raises(Unavailable):
        PodsFile(tmp_path / "taken").write([])


TORN = [
    *(("pod.json", content) for content in ("", "{", "[]", '{"pod": {}}', None)),
    *(("status.json", content) for content in ("", "{", "[]", '{"phase": "Flying"}', None)),
]


@pytest.mark.parametrize(("name", "content"), TORN)
def test_a_record_that_cannot_be_read_is_an_error_that_names_it_never_a_pod_less(
    store: LocalPods, source: LocalPods, name: str, content: str | None
) -> None:
    good, bad = _add(store, "good"), _add(store, "bad")
    path = store.folder(bad).path / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(Unavailable, match=bad):
        source.pods()
    assert store.get(good) is not None


def test_a_record_under_another_uid_is_an_error(store: LocalPods, source: LocalPods) -> None:
    uid = _add(store, "web")
    store.folder(uid).path.rename(store.path / "abc")
    with pytest.raises(Unavailable, match="abc"):
        source.pods()


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, source: LocalPods) -> None:
    (tmp_path / "pods").write_text("not a folder")
    with pytest.raises(Unavailable):
        source.pods()


def test_what_is_not_a_pods_folder_is_passed_over(store: LocalPods, source: LocalPods) -> None:
    _add(store, "web")
    (store.path / "lost+found").mkdir()
    (store.path / ".new-abc").mkdir()
    assert len(source.pods()) == 1
