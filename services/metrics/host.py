"""The host as the sources see it during one pass: every file is read at most once, cgroup folders are found once."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from services.metrics.core.figures import Figure, Kind, Target, Value
from shared.adapters.cgroup import Cgroups
from shared.adapters.hostfs import read_text
from shared.core.knobs import Version

_IDENTITY_CONTROLLER = "cpuacct"  # v1: the hierarchy of the usage counter, the figure that a re-made cgroup would spoil

T = TypeVar("T")


class Host:
    """Reads below one host root; `begin` opens a pass."""

    def __init__(self, host_root: Path, cgroups: Cgroups) -> None:
        self._root = str(host_root).rstrip("/")
        self._cgroups = cgroups
        self._folders: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str | None] = {}
        self._found: dict[tuple[object, str], object] = {}

    @property
    def version(self) -> Version:
        """Which cgroup version the host has."""
        return self._cgroups.version

    def begin(self, targets: Iterable[Target]) -> None:
        """Forget what was read in the last pass, and the folders of cgroups that are no longer measured."""
        self._texts.clear()
        self._found.clear()
        wanted = {target.group for target in targets}
        self._folders = {key: folder for key, folder in self._folders.items() if key[0] in wanted}

    def text(self, path: str) -> str | None:
        """A file below the host root ("proc/meminfo"); None where it does not exist."""
        return self.file(f"{self._root}/{path}")

    def group_text(self, target: Target, name: str, controller: str) -> str | None:
        """A file of the target's cgroup; `controller` names the v1 hierarchy. None where it does not exist."""
        return self.file(f"{self.group_folder(target, controller)}/{name}")

    def file(self, path: str) -> str | None:
        """A file by its whole path; None where it does not exist."""
        try:
            return self._texts[path]
        except KeyError:
            text = self._texts[path] = read_text(path)
            return text

    def once(self, find: Callable[["Host", str], T], folder: str) -> T:
        """What `find` says about a folder, found out once a pass: the parts of a tree are targets too."""
        key = (find, folder)
        if key not in self._found:
            self._found[key] = find(self, folder)
        return cast("T", self._found[key])

    def group_folder(self, target: Target, controller: str) -> str:
        """The folder of the target's cgroup in a v1 hierarchy (the only one on v2).

        Raises:
            Refused: the cgroup's name is not allowed.
        """
        key = (target.group, controller)
        folder = self._folders.get(key)
        if folder is None:
            folder = self._folders[key] = str(self._cgroups.folder(*key))
        return folder

    def identity(self, target: Target) -> int | None:
        """The inode of the target's cgroup, which a re-made cgroup does not share; None where there is no cgroup."""
        try:
            return os.stat(self.group_folder(target, _IDENTITY_CONTROLLER)).st_ino  # noqa: PTH116 - half the cost
        except FileNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class Source:
    """One source: the figures it offers for each kind of target, and how their raw values are read.

    `read` returns the raw values it finds; one that is not there is left out, never given as 0. It may raise OSError
    or ValueError: then this source's figures of this target are absent in the pass, and health says so.
    """

    figures: Mapping[Kind, tuple[Figure, ...]]
    read: Callable[[Host, Target], Mapping[str, Value]]
