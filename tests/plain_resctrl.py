"""A resctrl tree of plain files; `tree` makes and removes groups as a kernel does."""

import shutil
from pathlib import Path

from services.qrm.adapters.resctrl.tree import ResctrlTree

WHOLE = "    L3:0=7ff;1=7ff\n    MB:0=100;1=100\n"


class PlainResctrl:
    """The files of a machine with two sockets, eleven ways each, and bandwidth in steps of ten percent."""

    def __init__(self, host_root: Path, whole: str = WHOLE) -> None:
        self.root = host_root / "sys/fs/resctrl"
        self.root.mkdir(parents=True)
        for name, text in (("L3/min_cbm_bits", "2"), ("MB/bandwidth_gran", "10"), ("MB/min_bandwidth", "10")):
            path = self.root / "info" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        self._fill(self.root, whole)
        self._whole = whole
        self.tree = ResctrlTree(host_root, mkdir=self._make, rmdir=shutil.rmtree)

    def _make(self, folder: Path) -> None:
        folder.mkdir()
        self._fill(folder, self._whole)

    def _fill(self, folder: Path, whole: str) -> None:
        (folder / "schemata").write_text(whole)
        (folder / "tasks").write_text("")

    def get(self, group: str, name: str = "schemata") -> list[str]:
        return (self.root / group / name).read_text().split()
