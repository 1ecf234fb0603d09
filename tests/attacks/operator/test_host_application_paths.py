"""Cgroups of applications as nobody means them: nothing outside of the cgroup root is read, nothing else suffers."""

from pathlib import Path

import pytest
from odd_documents import odd_documents

from services.metrics.adapters.host import HostReader
from services.metrics.core.applications import MeasuredApplication, place
from services.metrics.settings import MetricsSettings
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.errors import BadConfig, Refused
from shared.settings import check

GOOD = {
    "host_applications": [
        {"name": "yarn", "path": "hadoop-yarn/nm", "base": "KubepodsBesteffort", "qos": "BE", "priority": "koord-batch"}
    ]
}
WAYS_OUT = (
    "..", "../..", "a/../../..", "a/./b", "./a", ".hidden", "a/..\0", "a\n/b", "a\0b", "\\x2e\\x2e/a", "a b", "~/a",
    "../../../proc/1", "%2e%2e/a", "\u2024\u2024/a", "a/" * 300 + "b",
)  # fmt: skip


@pytest.mark.parametrize("path", WAYS_OUT)
def test_a_path_that_could_lead_out_is_refused_by_the_settings(path: str) -> None:
    document = {"host_applications": [{"name": "yarn", "path": path}]}
    with pytest.raises(BadConfig) as refusal:
        check(MetricsSettings, document, where="metrics")
    assert "path" in str(refusal.value)


def test_odd_settings_are_taken_whole_or_refused_and_stay_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup/cpuset").mkdir(parents=True)
    cgroups = Cgroups(tmp_path)
    taken = 0
    for name, document in odd_documents([GOOD], 1500, seed=41):
        try:
            settings = check(MetricsSettings, document, where="metrics")
        except BadConfig:
            continue
        placed = place(settings.host_applications, KubeletLayout("cgroupfs"), ())
        for target in placed.targets:
            taken += 1
            folder = cgroups.folder(target.group, "cpuset")
            assert folder.resolve().is_relative_to(cgroups.root.resolve()), name
    assert taken


def test_a_symbolic_link_among_the_cgroups_is_not_followed(tmp_path: Path) -> None:
    """None is there on a real kernel; a bind mount or a tree of somebody's own may have one."""
    secret, root = tmp_path / "secret", tmp_path / "host"
    for folder in (secret / "nm", root / "sys/fs/cgroup/cpuset", root / "sys/fs/cgroup/cpuacct"):
        folder.mkdir(parents=True)
    (secret / "nm/cpuacct.usage").write_text("1\n")
    (root / "sys/fs/cgroup/cpuacct/yarn").symlink_to(secret)
    (target,) = place([MeasuredApplication(name="yarn", path="yarn/nm")], KubeletLayout("cgroupfs"), ()).targets
    host = HostReader(root, Cgroups(root))
    host.begin([target])
    with pytest.raises(Refused, match="symbolic link"):
        host.identity(target)
