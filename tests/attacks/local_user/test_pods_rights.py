"""A pod that somebody else's command runs in: who it is, what it may do, what it learns of root."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pods_rig import ROOT_ONLY, own_top, record, runtime, wait_for

from shared.adapters.local.pod_user import PodUser, this_user
from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused, Unfit

pytestmark = ROOT_ONLY
SOMEBODY = PodUser(64321, 64322, (64322, 64323), "somebody", "/")


@pytest.fixture
def top() -> Iterator[str]:
    with own_top() as name:
        yield name


def stored(pods: Runtime, pod: PodRecord) -> StoredPod:
    found = pods.pods.get(pod.pod.uid)
    assert found is not None
    return found


def ran(tmp_path: Path, top: str, user: PodUser, script: str) -> str:
    """What a detached pod of this user's printed."""
    pods, pod = runtime(tmp_path, top), record("job", "sh", "-c", script, qos="shared_cores")
    pods.start(pod, env={**os.environ, "ROOTS_SECRET": "s3cret"}, user=user)
    wait_for(lambda: stored(pods, pod).status.finished)
    return stored(pods, pod).folder.log("main").read_text()


def facts(text: str) -> dict[str, str]:
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


@pytest.mark.parametrize("user", [SOMEBODY, this_user()], ids=["another user", "root"])
def test_a_pod_is_its_user_without_a_capability_and_can_get_none(tmp_path: Path, top: str, user: PodUser) -> None:
    said = facts(ran(tmp_path, top, user, "cat /proc/self/status"))
    assert said["Uid"].split() == [str(user.uid)] * 4
    assert said["Gid"].split() == [str(user.gid)] * 4
    assert sorted(map(int, said["Groups"].split())) == sorted(user.groups)
    assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert said["NoNewPrivs"] == "1"


def test_a_pod_of_another_user_learns_nothing_of_root_and_reaches_nothing_of_sublets(tmp_path: Path, top: str) -> None:
    (tmp_path / "roots").write_text("s3cret")
    tries = f"""env; cat {tmp_path}/roots; ls {tmp_path}/pods; ls /proc/$PPID/fd; cat /proc/$PPID/environ
    for f in $(find /sys/fs/cgroup -path '*{top}*' -name cgroup.procs); do echo $$ > $f; done
    kill -0 $PPID; ls -l /proc/self/fd; echo done"""
    said = ran(tmp_path, top, SOMEBODY, tries)
    assert "done" in said
    assert "s3cret" not in said
    assert "HOME=/\n" in said
    assert "USER=somebody\n" in said
    denied = [line for line in said.splitlines() if "denied" in line.lower() or "not permitted" in line.lower()]
    assert len(denied) >= 6, said
    assert "alive.lock" not in said  # nobody handed the watcher's descriptors down


def test_no_pod_is_started_out_of_a_state_folder_that_others_may_write(tmp_path: Path, top: str) -> None:
    at = tmp_path / "state"
    at.mkdir()
    at.chmod(0o777)
    with pytest.raises(Unfit, match=r"state folder .* others may write there"):
        runtime(at, top).start(record("job", "true", qos="shared_cores"), env={})


def test_a_folder_that_its_user_may_not_enter_is_named(tmp_path: Path, top: str) -> None:
    pod = record("job", "true", qos="shared_cores")
    runs = tuple(run.model_copy(update={"workdir": str(tmp_path)}) for run in pod.runs)
    with pytest.raises(Refused, match=f"cannot enter folder {tmp_path}: Permission denied"):
        runtime(tmp_path, top).start(pod.model_copy(update={"runs": runs}), env=os.environ, user=SOMEBODY)
