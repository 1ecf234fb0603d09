"""The kustomize bases, from the chart: HELM=helm python deploy/k8s/render.py

What all renderings share goes to `base`, the rest to `overlays/<name>`, what an uninstall does to `uninstall`.
`rendered.sum` says of which chart they are; a test compares (docs/adr/0011-one-source-of-manifests.md).
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import values_schema

HERE = Path(__file__).parent
OVERLAYS = ("demo", "default", "ha")
NAMESPACE, KUBE_VERSION = "sublet-system", "1.30.0"
UNINSTALL, SUM = "templates/uninstall.yaml", HERE / "rendered.sum"
HOOKS = ("templates/check.yaml", "templates/tests/installed.yaml")
SOURCE = "# Source: sublet/"


def template(helm: str, *words: str) -> str:
    """What the chart renders, its kinds left out."""
    asked = [helm, "template", "sublet", str(HERE / "chart"), "--namespace", NAMESPACE]
    asked += ["--kube-version", KUBE_VERSION, *words]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def documents(text: str) -> list[tuple[str, str]]:
    """Each document with the template that it comes from, in the order of the text."""
    found: list[tuple[str, str]] = []
    for document in f"\n{text}".split("\n---\n"):
        source, body = "", []
        for line in document.strip("\n").splitlines():
            if line.startswith(SOURCE):
                source = line.removeprefix(SOURCE)
            else:
                body.append(line)
        text = "\n".join(body).strip("\n")
        if text:
            found.append((source, f"{text}\n"))
    return found


def written(rendered: dict[str, str]) -> dict[str, str]:
    """The files' texts by their paths, given what the chart renders for each overlay."""
    # kubectl has no hooks: what it applies, the services check at their start, and `sublet doctor --installed` later.
    parts = {name: [d for d in documents(text) if d[0] not in HOOKS] for name, text in rendered.items()}
    shared = set.intersection(*(set(found) for found in parts.values()))
    first = parts[OVERLAYS[0]]
    files = {
        "base/sublet.yaml": joined(d for d in first if d in shared and d[0] != UNINSTALL),
        "uninstall/uninstall.yaml": _without_hooks(joined(d for d in first if d[0] == UNINSTALL)),
    }
    for name, found in parts.items():
        files[f"overlays/{name}/sublet.yaml"] = joined(d for d in found if d not in shared and d[0] != UNINSTALL)
    return files


def joined(found: Iterable[tuple[str, str]]) -> str:
    """One text of several documents."""
    head = "# Made from ../chart by render.py: change it there.\n"
    return head + "---\n".join(text for _, text in found)


def _without_hooks(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "helm.sh/" not in line and line.strip() != "annotations:")


def checksums() -> str:
    """Of the chart, and of what is made from it."""
    chart = sorted(p for p in (HERE / "chart").rglob("*") if p.is_file() and "crds" not in p.parts)
    made = sorted([HERE / "base/sublet.yaml", HERE / "uninstall/uninstall.yaml", *HERE.glob("overlays/*/sublet.yaml")])
    return f"chart {_sum(chart)}\nrendered {_sum(made)}\n"


def _sum(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    return whole.hexdigest()


def main() -> None:
    """Write them."""
    helm = os.environ.get("HELM", "helm")
    values_schema.SCHEMA.write_text(values_schema.text())
    rendered = {name: template(helm, "--values", str(HERE / f"chart/values-{name}.yaml")) for name in OVERLAYS}
    for path, text in written(rendered).items():
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(text)
    SUM.write_text(checksums())


if __name__ == "__main__":
    sys.exit(main())
