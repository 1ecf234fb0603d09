"""Selects the cluster of a command: by its option, SUBLET_KUBECONFIG, KUBECONFIG, ~/.kube/config, or the one of this
pod."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import Refused, Unavailable

if TYPE_CHECKING:
    from shared.adapters.kube.client import Kube


@dataclass(frozen=True, slots=True)
class Way:
    """The way to an API server."""

    kubeconfig: Path | None
    """None: the cluster in which this process runs."""

    def __str__(self) -> str:
        return str(self.kubeconfig or "this pod's cluster")


def find_way(asked: Path | None, configured: Path | None, env: Mapping[str, str], home: Path) -> Way | None:
    """The first of them that is there; None where there is no way to any cluster.

    Raises:
        Refused: the file that was asked for is not there.
    """
    if asked is not None and not asked.exists():
        raise Refused(f"--kubeconfig {asked}: no such file", reason="option")
    if named := asked or configured or (Path(env["KUBECONFIG"]) if env.get("KUBECONFIG") else None):
        return Way(named)
    if (usual := home / ".kube/config").exists():
        return Way(usual)
    return Way(None) if env.get("KUBERNETES_SERVICE_HOST") else None


def way_to_cluster(asked: Path | None) -> Way | None:
    """As `find_way`, for this process.

    Raises:
        Refused: as `find_way`.
    """
    from shared.settings import common_settings, raw_settings

    return find_way(asked, common_settings(raw_settings()).kubeconfig, os.environ, Path.home())


def require_way(asked: Path | None) -> Way:
    """As `way_to_cluster`.

    Raises:
        Unavailable: there is no way to any cluster.
        Refused: as `find_way`.
    """
    way = way_to_cluster(asked)
    if way is None:
        raise Unavailable("no cluster is known: name one with --kubeconfig FILE or KUBECONFIG", reason="kubeconfig")
    return way


def open_kube(way: Way) -> "Kube":
    """A client of that cluster's API server; its first call finds out whether it is there.

    Raises:
        Unfit: the Kubernetes client, which is optional, is not installed.
    """
    from shared.adapters.kube.client import Kube

    return Kube(way.kubeconfig)
