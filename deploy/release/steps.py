"""What a release does to a checkout, step by step; where one fails before the commit, the checkout is as it was."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from deploy.artifacts import chart
from deploy.artifacts.checkout import BuildError, run
from deploy.release.texts import REPEATED, NotReleasable, newer, read_version, released, versions_in, with_version

CHANGELOG = "CHANGELOG.md"
WRITTEN_ANEW = ("schemas", "settings", "reference", "manifests")
"""Targets of make that write what names the version."""
CHECKS = ("lint", "type", "imports", "unit")


@dataclass(slots=True)
class Release:
    """A version of a checkout."""

    folder: Path
    version: str
    day: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def tag(self) -> str:
        """What the release is called in git."""
        return f"v{self.version}"

    def check(self) -> None:
        """Look for what stands against the release; nothing is changed.

        Raises:
            NotReleasable: something does.
            ToolMissing: there is no helm, by which the manifests are written.
        """
        read_version(self.version)
        changed = self._git("status", "--porcelain").splitlines()
        if changed:
            raise NotReleasable(
                f"{len(changed)} files are not committed, the first is {changed[0][3:]}: commit or stash"
            )
        tags = self._git("tag", "--list", "v*").split()
        if self.tag in tags:
            raise NotReleasable(f"tag {self.tag} exists already: give another VERSION")
        later = sorted(tag for tag in tags if not newer(self.version, tag.removeprefix("v")))
        if later:
            raise NotReleasable(f"VERSION={self.version} does not come after {later[-1]}, which is released")
        released(self._read(CHANGELOG), self.version, self.day)
        chart.find_helm()  # the manifests name the version
        for path in REPEATED:
            with_version(path, self._read(path), self.version)

    def plan(self) -> Sequence[str]:
        """The steps in words."""
        before = sorted({one for path in REPEATED for one in versions_in(path, self._read(path))})
        return (
            f"write version {self.version} (now {', '.join(before)}) into {', '.join(REPEATED)}",
            f"give {CHANGELOG} the section [{self.version}] - {self.day}",
            f"make {' '.join(WRITTEN_ANEW)}",
            f"make {' '.join(CHECKS)}",
            f"commit, and tag {self.tag}",
            "make dist: wheel, source distribution, pages, chart, Debian package, checksums; images where an engine is",
        )

    def make(self, say: Callable[[str], None]) -> None:
        """Do all of it. A checkout that was clean is as it was when something fails before the commit.

        Raises:
            BuildError: a step failed; with its last words.
        """
        try:
            say(f"writing version {self.version} and the changelog")
            for path in REPEATED:
                self._write(path, with_version(path, self._read(path), self.version))
            self._write(CHANGELOG, released(self._read(CHANGELOG), self.version, self.day))
            for target in (*WRITTEN_ANEW, *CHECKS):
                say(f"make {target}")
                run(["make", target], cwd=self.folder)
        except BaseException:
            self._git("checkout", "--quiet", "--", ".")
            self._git("clean", "--quiet", "--force", "-d")
            raise
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", f"Release {self.version}")
        self._git("tag", "--annotate", self.tag, "--message", f"Sublet {self.version}")
        say(f"tagged {self.tag}; make dist")
        try:
            done = run(["make", "dist"], cwd=self.folder)
        except BuildError as error:
            raise BuildError(f"{error}\n{self.tag} is tagged: mend the cause, and run make dist") from error
        say(f"built\n{done.rstrip()}")
        say(f"nothing is published yet: git push origin HEAD {self.tag}, then hand out dist/")

    def _read(self, path: str) -> str:
        return (self.folder / path).read_text()

    def _write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", str(self.folder), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotReleasable(f"git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout
