"""The Helm chart as a package, with `helm`, whose own archive bears the time at which it was made."""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from deploy.artifacts.checkout import Checkout, ToolMissing, pack, run

NAME = "sublet"


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Package the chart; its file.

    Raises:
        ToolMissing: there is no helm.
    """
    helm = os.environ.get("HELM") or "helm"
    if shutil.which(helm) is None:
        raise ToolMissing(f"{helm} is not on this machine: name it by HELM=…")
    with tempfile.TemporaryDirectory(prefix="sublet-chart-") as place:
        run([helm, "package", checkout.folder / "deploy/k8s/chart", "--destination", place])
        (packed,) = Path(place).glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(Path(place) / "files", filter="data")
        return [pack(Path(place) / "files" / NAME, goal / packed.name, checkout.epoch_s, NAME)]
