"""An image as an archive that depends on its contents alone: what an engine saved, without times, names or chance.

Engines write the time of the build into layers and configuration, and an old one the name of the container it built in.
The archive is an OCI layout that `docker load` reads as well.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
KEPT_SETTINGS = ("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal")
"""Of a container's settings, what the specification of images knows; the rest is of the container that built it."""
CONTENT_SUM = re.compile(r"\b(dir|file|multi):[0-9a-f]{64}")
"""How an old engine names what a step copied: a sum that knows times."""
XATTR = "SCHILY.xattr."
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of the archive by its digest."""

    path: Path
    digest: str
    media_type: str

    def descriptor(self) -> dict[str, Any]:
        """How a manifest names it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.path.stat().st_size}


def write_archive(saved: Path, goal: Path, name: str, base_layers: Collection[str], epoch_s: int) -> str:
    """Write the archive of an image that `docker save` wrote; the digest of its manifest.

    Args:
        saved: what the engine wrote, with one image in it.
        goal: the file that is written.
        name: the image's name with its tag.
        base_layers: digests of layers that are another image's, and stay as they are.
        epoch_s: the time that all of it bears.
    """
    place = goal.with_name(f".{goal.name}.blobs")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        with tarfile.open(saved) as archive:
            (image,) = json.loads(_read(archive, "manifest.json"))
            told = json.loads(_read(archive, image["Config"]))
            made = [
                _layer(archive, layer, place, epoch_s, keep=diff in base_layers)
                for layer, diff in zip(image["Layers"], told["rootfs"]["diff_ids"], strict=True)
            ]
        config = _json(place, plain_config(told, [diff for _, diff in made], base_layers, epoch_s), CONFIG_TYPE)
        layers = [blob for blob, _ in made]
        manifest = _json(
            place,
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": config.descriptor(),
                "layers": [layer.descriptor() for layer in layers],
            },
            MANIFEST_TYPE,
        )
        _pack(goal, name, [manifest, config, *layers], epoch_s)
    finally:
        shutil.rmtree(place)
    return manifest.digest


def plain_config(
    told: Mapping[str, Any], diff_ids: Sequence[str], base_layers: Collection[str], epoch_s: int
) -> dict[str, Any]:
    """The configuration without what is of the build and not of the image."""
    created = datetime.fromtimestamp(epoch_s, UTC).isoformat().replace("+00:00", "Z")
    settings = told.get("config") or {}
    history, below = [], len(base_layers)
    for step in told.get("history") or []:
        of_base = below > 0
        below -= not step.get("empty_layer", False)
        words = CONTENT_SUM.sub(r"\1", step.get("created_by", ""))
        kept = {"created": created, "created_by": words, "empty_layer": step.get("empty_layer")}
        history.append(step if of_base else {key: value for key, value in kept.items() if value})
    return {
        "created": created,
        "architecture": told["architecture"],
        "os": told["os"],
        "config": {key: settings[key] for key in KEPT_SETTINGS if settings.get(key)},
        "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        "history": history,
    }


def plain_layer(layer: BinaryIO, goal: BinaryIO, epoch_s: int) -> None:
    """Write a layer anew: entries in order, one time for all, no names of users, links behind what they link to."""
    with (
        tarfile.open(fileobj=layer) as found,
        tarfile.open(fileobj=goal, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in sorted(found.getmembers(), key=lambda one: (one.islnk(), one.name)):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mode, plain.linkname = member.type, member.size, member.mode, member.linkname
            plain.uid, plain.gid, plain.mtime = member.uid, member.gid, epoch_s
            plain.devmajor, plain.devminor = member.devmajor, member.devminor
            plain.pax_headers = {key: value for key, value in member.pax_headers.items() if key.startswith(XATTR)}
            made.addfile(plain, found.extractfile(member) if member.isreg() else None)


def layer_texts(path: Path, wanted: re.Pattern[str]) -> dict[str, str]:
    """The texts of files in an archive's image whose paths match, by path; of several layers, the last one's."""
    texts: dict[str, str] = {}
    with tarfile.open(path) as archive:
        (image,) = json.loads(_read(archive, "manifest.json"))
        for name in image["Layers"]:
            with tarfile.open(fileobj=_open(archive, name)) as layer:
                for member in layer:
                    if member.isreg() and wanted.fullmatch(member.name.removeprefix("./")):
                        file = layer.extractfile(member)
                        texts[member.name.removeprefix("./")] = file.read().decode(errors="replace") if file else ""
    return texts


def config_of(path: Path) -> dict[str, Any]:
    """The configuration of an archive's image."""
    with tarfile.open(path) as archive:
        (image,) = json.loads(_read(archive, "manifest.json"))
        told: dict[str, Any] = json.loads(_read(archive, image["Config"]))
    return told


def _layer(archive: tarfile.TarFile, name: str, place: Path, epoch_s: int, *, keep: bool) -> tuple[Blob, str]:
    """A layer as a blob, and the digest of what it holds."""
    plain, packed = place / "layer", place / "layer.gz"
    with plain.open("wb") as goal:
        if keep:
            shutil.copyfileobj(_open(archive, name), goal, CHUNK_BYTES)
        else:
            plain_layer(_open(archive, name), goal, epoch_s)
    diff = _digest(plain)
    with plain.open("rb") as source, packed.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as zipped:
        shutil.copyfileobj(source, zipped, CHUNK_BYTES)
    plain.unlink()
    return _blob(packed, LAYER_TYPE), diff


def _json(place: Path, content: Mapping[str, Any], media_type: str) -> Blob:
    path = place / "text"
    path.write_text(json.dumps(content, sort_keys=True, separators=(",", ":")))
    return _blob(path, media_type)


def _blob(path: Path, media_type: str) -> Blob:
    digest = _digest(path)
    return Blob(path.rename(path.with_name(digest.removeprefix("sha256:"))), digest, media_type)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _pack(goal: Path, name: str, blobs: Sequence[Blob], epoch_s: int) -> None:
    """Write blobs and both indexes: of OCI, and of `docker load`."""
    manifest, config, *layers = blobs
    at = {blob.digest: f"blobs/sha256/{blob.path.name}" for blob in blobs}
    named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = {"schemaVersion": 2, "manifests": [{**manifest.descriptor(), "annotations": named}]}
    old = [{"Config": at[config.digest], "RepoTags": [name], "Layers": [at[layer.digest] for layer in layers]}]
    texts = {"index.json": index, "manifest.json": old, "oci-layout": {"imageLayoutVersion": "1.0.0"}}
    files: dict[str, bytes | Path] = {path: json.dumps(text, sort_keys=True).encode() for path, text in texts.items()}
    files |= {at[blob.digest]: blob.path for blob in blobs}
    with tarfile.open(goal, "w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.mtime, member.mode = epoch_s, 0o644
            member.size = len(content) if isinstance(content, bytes) else content.stat().st_size
            with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
                archive.addfile(member, file)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    return bytes(_open(archive, name).read())


def _open(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is no file")
    return file
