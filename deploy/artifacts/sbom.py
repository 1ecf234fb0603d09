"""What is in an image, as CycloneDX: Python packages by their metadata, Debian packages by dpkg's own list."""

import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from deploy.artifacts.image_archive import layer_texts

METADATA = re.compile(r".*/[^/]+\.dist-info/METADATA")
DPKG = re.compile(r"var/lib/dpkg/status(\.d/[^/]+)?")
SUITE_FILE = re.compile(r"(usr/lib|etc)/os-release")


def of_image(archive: Path, name: str, version: str, digest: str, epoch_s: int) -> str:
    """The bill of materials of an image's archive."""
    texts = layer_texts(archive, re.compile("|".join(p.pattern for p in (METADATA, DPKG, SUITE_FILE))))
    components = sorted(_components(texts), key=lambda one: str(one.purl))
    image = Component(
        name=name, version=version, type=ComponentType.CONTAINER, bom_ref=name,
        purl=PackageURL("oci", name=name, version=digest),
    )  # fmt: skip
    bom = Bom(components=components, serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest))
    bom.metadata.component = image
    bom.metadata.timestamp = datetime.fromtimestamp(epoch_s, UTC)
    bom.register_dependency(image, components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _components(texts: dict[str, str]) -> Iterator[Component]:
    distribution = next((_field(text, "ID=") for path, text in texts.items() if SUITE_FILE.fullmatch(path)), "debian")
    for path, text in texts.items():
        if METADATA.fullmatch(path):
            told = HeaderParser().parsestr(text)
            yield _component(PackageURL("pypi", name=str(told["Name"]).lower(), version=told["Version"]))
        elif DPKG.fullmatch(path):
            for record in text.strip().split("\n\n"):
                dpkg = HeaderParser().parsestr(record)
                if str(dpkg.get("Status", "install ok installed")).endswith(" installed"):
                    found = {"arch": str(dpkg["Architecture"])}
                    yield _component(PackageURL("deb", distribution, dpkg["Package"], dpkg["Version"], found))


def _component(purl: PackageURL) -> Component:
    return Component(name=purl.name, version=purl.version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl))


def _field(text: str, key: str) -> str:
    return next((line.removeprefix(key).strip('"') for line in text.splitlines() if line.startswith(key)), "")
