"""A resctrl tree of plain files that takes and refuses what a kernel would."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from fake_resctrl import ENDED, INFO, WHOLE, FakeResctrl

from services.qrm.adapters.resctrl.tree import ResctrlTree


class PlainResctrl:
    """The files of `FakeResctrl`; `tree` reads them, and writes by way of it."""

    def __init__(
        self, host_root: Path, whole: str = WHOLE, info: Mapping[str, str] = INFO, cpuinfo: str | None = None
    ) -> None:
        self.kernel = FakeResctrl(whole, info, cpuinfo or "")
        self.root = host_root / "sys/fs/resctrl"
        for name, text in info.items():
            self._put(self.root / "info" / name, f"{text}\n")
        if cpuinfo is not None:
            self._put(host_root / "proc/cpuinfo", cpuinfo)
        self.tree = ResctrlTree(host_root, mkdir=self._make, rmdir=self._remove, write=self._write)
        self.show()

    def get(self, group: str, name: str = "schemata") -> list[str]:
        return (self.root / group / name).read_text().split()

    def _make(self, folder: Path) -> None:
        self._then_show(lambda: self.kernel.make(folder.name))

    def _remove(self, folder: Path) -> None:
        self._then_show(lambda: self.kernel.remove(folder.name))
        shutil.rmtree(folder)

    def _write(self, path: Path, text: str) -> None:
        group, line = "" if path.parent == self.root else path.parent.name, text.strip()
        if not path.is_file():
            raise IsADirectoryError(21, "Is a directory")
        if path.name == "tasks" and int(line) == ENDED:
            raise ProcessLookupError(3, "No such process")
        if path.name == "schemata":
            self._then_show(lambda: self.kernel.write(group, line))
        else:
            self._then_show(lambda: self.kernel.add_task(group, int(line)))

    def _then_show(self, do: Callable[[], None]) -> None:
        try:
            do()
        finally:
            self.show()

    def show(self) -> None:
        for group in self.kernel.texts:
            self._put(self.root / group / "schemata", self.kernel.text(group))
            tasks = sorted(self.kernel.tasks(group))
            self._put(self.root / group / "tasks", "".join(f"{task}\n" for task in tasks))
            for l3, (local, total) in self.kernel.counts.get(group, {}).items():
                data = self.root / group / f"mon_data/mon_L3_{l3:02}"
                self._put(data / "mbm_local_bytes", f"{local}\n")
                self._put(data / "mbm_total_bytes", f"{total}\n")
        self._put(self.root / "info/last_cmd_status", f"{self.kernel.status}\n")

    @staticmethod
    def _put(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.write_text(text)
