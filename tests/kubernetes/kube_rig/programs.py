"""The programs of a cluster, each built once from its published sources, in a Go module made for it."""

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rig.packages import run
from rig_parts import Say, build_with_go, find_go, fresh

KUBERNETES = os.environ.get("KUBERNETES") or "v1.35.4"
"""Any published version; the suite knows 1.30 to 1.35."""
ETCD, COREDNS, HELM = "v3.6.5", "v1.13.1", "v3.19.0"
_STAGED = re.sub(r"^v1\.", "v0.", KUBERNETES)
"""The version under which Kubernetes publishes what it develops in folders of its own."""
_MAJOR, _MINOR, _ = KUBERNETES.removeprefix("v").split(".")
RESIZES_IN_PLACE = int(_MINOR) >= 33
"""Whether the API server has `pods/resize`; before that it is an alpha feature, which is off."""
SPEAKS_FOR_A_POD = int(_MINOR) >= 34
"""Whether a pod may have `resources` as a whole; before that it is an alpha feature, which is off, or not there."""
_VERSION = "k8s.io/component-base/version"
_COREDNS_MAIN = """\
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func init() { dnsserver.Directives = []string{"errors", "health", "kubernetes"} }

func main() { coremain.Run() }
"""
"""Without the plugins for clouds, which take most of the time to build."""


@dataclass(frozen=True, slots=True)
class Source:
    """A published module and the programs that are built from it."""

    module: str
    version: str
    packages: Mapping[str, str]
    """By program."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What a release sets at link time."""
    main: str = ""
    """The text of a main package of ours (`.`), where the published one has too much in it."""

    def go_mod(self, published: str) -> str:
        """The text of a module that requires this one, given the text of the published go.mod."""
        language = re.findall(r"(?m)^go \S+$", published)
        staged = re.findall(r"(?m)^\s*(\S+) => \./staging/", published)
        replaced = [f"replace {name} => {name} {_STAGED}" for name in staged]
        return "\n".join(
            ("module sublet.example/cluster", *language, f"require {self.module} {self.version}", *replaced, "")
        )


_OF_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-proxy")
SOURCES = (
    Source("go.etcd.io/etcd/server/v3", ETCD, {"etcd": "go.etcd.io/etcd/server/v3"}),
    Source(
        "k8s.io/kubernetes",
        KUBERNETES,
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in _OF_KUBERNETES},
        {
            f"{_VERSION}.gitVersion": KUBERNETES,
            f"{_VERSION}.gitMajor": _MAJOR,
            f"{_VERSION}.gitMinor": _MINOR,
            f"{_VERSION}.gitTreeState": "clean",
        },
    ),
    Source("github.com/coredns/coredns", COREDNS, {"coredns": "."}, main=_COREDNS_MAIN),
    Source(
        "helm.sh/helm/v3",
        HELM,
        {"helm": "helm.sh/helm/v3/cmd/helm"},
        {"helm.sh/helm/v3/internal/version.version": HELM},
    ),
)


def build_programs(cache: Path, say: Say) -> dict[str, Path]:
    """Build what is not in the cache yet; the path of each program by its name.

    Raises:
        RigMissing: one cannot be built; with the last words of the compiler.
    """
    found: dict[str, Path] = {}
    for source in SOURCES:
        kept = {name: cache / "programs" / f"{name}-{source.version}" for name in source.packages}
        missing = [name for name, path in kept.items() if not path.exists()]
        if missing:
            with tempfile.TemporaryDirectory(prefix=".module-", dir=cache) as place:
                module = Path(place)
                _write_module(module, source, find_go(cache, say))
                for name in missing:
                    say(f"building {name} {source.version}")
                    _build(cache, say, module, source, name, kept[name])
        found |= kept
    return found


def _write_module(folder: Path, source: Source, go: Path) -> None:
    asked = ("mod", "download", "-json", f"{source.module}@{source.version}")
    published = Path(json.loads(run(["env", "GOTOOLCHAIN=auto", go, *asked], cwd=folder))["GoMod"])
    (folder / "go.mod").write_text(source.go_mod(published.read_text()))
    if source.main:
        (folder / "main.go").write_text(source.main)


def _build(cache: Path, say: Say, module: Path, source: Source, name: str, program: Path) -> None:
    settings = [word for variable, value in source.variables.items() for word in ("-X", f"{variable}={value}")]
    with fresh(program) as place:
        words: list[str | Path] = ["-ldflags", " ".join(("-s", "-w", *settings)), "-o", place, source.packages[name]]
        build_with_go(cache, say, module, words, flags="-mod=mod -p=2")
