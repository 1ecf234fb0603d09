"""The Helm chart as a package, with `helm`, whose own archive bears the time at which it was made."""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from deploy.artifacts.checkout import Checkout, ToolMissing, pack, run, source_of

NAME = "sublet"
OF_THE_RIG = ".cache/sublet-kubernetes/programs"
"""Where `make rig-kubernetes` puts the one that the tests of a cluster use, below the home folder."""


def find_helm() -> str:
    """The program that HELM names, else the one on the path, else the rig's.

    Raises:
        ToolMissing: there is none.
    """
    built = sorted(map(str, (Path.home() / OF_THE_RIG).glob("helm-*")), reverse=True)
    named = os.environ.get("HELM")
    found = next(filter(shutil.which, [named] if named else ["helm", *built]), None)
    if found is None:
        raise ToolMissing(
            f"{named or 'helm'} is not on this machine: name it by HELM=…, or build it by make rig-kubernetes"
        )
    return found


def say_where_from(file: Path, source: str) -> None:
    """Add the address of the sources to a `Chart.yaml`, where there is one."""
    if source:
        file.write_text(f"{file.read_text()}home: {source}\nsources: [{source}]\n")


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Package the chart; its file.

    Raises:
        ToolMissing: there is no helm.
    """
    helm = find_helm()
    with tempfile.TemporaryDirectory(prefix="sublet-chart-") as place:
        chart = Path(place) / "chart"
        shutil.copytree(checkout.folder / "deploy/k8s/chart", chart)
        say_where_from(chart / "Chart.yaml", source_of(checkout.folder))
        run([helm, "package", chart, "--destination", place])
        (packed,) = Path(place).glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(Path(place) / "files", filter="data")
        return [pack(Path(place) / "files" / NAME, goal / packed.name, checkout.epoch_s, NAME)]
