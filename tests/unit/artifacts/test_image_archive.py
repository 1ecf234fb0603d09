"""An image's archive depends on what is in the image; when, where and in which order it was built does not show."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from deploy.artifacts import sbom
from deploy.artifacts.image_archive import config_of, layer_texts, write_archive

EPOCH_S = 1_700_000_000
NAME = "sublet:1.2.3"
BASE_FILES = {"etc/os-release": b"ID=debian\n", "var/lib/dpkg/status": b"Package: libc6\nStatus: install ok installed\n"
              b"Architecture: amd64\nVersion: 2.36-9\n\nPackage: gone\nStatus: deinstall ok config-files\n"
              b"Architecture: amd64\nVersion: 1\n"}  # fmt: skip
FILES = {
    "opt/a.dist-info/METADATA": b"Metadata-Version: 2.1\nName: A-Package\nVersion: 1.0\n\nWords\nName: none\n",
    "opt/b.py": b"print()\n",
}


def layer(files: dict[str, bytes], second: int, backwards: bool = False, user: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items(), reverse=backwards):
            member = tarfile.TarInfo(path)
            member.size, member.mtime, member.mode, member.uname = len(data), second + 0.5, 0o644, user
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("opt/0")
        link.type, link.linkname, link.mtime = tarfile.LNKTYPE, next(iter(sorted(files))), second
        archive.addfile(link)
    return packed.getvalue()


def save(path: Path, second: int, *, backwards: bool = False, files: dict[str, bytes] | None = None) -> None:
    """What `docker save` writes, in the old form, at some second."""
    layers = {
        "one/layer.tar": layer(BASE_FILES, 1, user="root"),
        "two/layer.tar": layer(files or FILES, second, backwards),
    }
    diffs = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers.values()]
    step = f"COPY dir:{hashlib.sha256(str(second).encode()).hexdigest()} in /opt"
    settings = {
        "User": "10001:10001",
        "Hostname": f"host{second}",
        "Image": str(second),
        "Labels": {"a": "b"},
        "Cmd": None,
    }
    told = {
        "architecture": "amd64", "os": "linux", "created": str(second), "container": str(second), "config": settings,
        "rootfs": {"type": "layers", "diff_ids": diffs}, "docker_version": "20.10",
        "history": [{"created": "2020-01-01T00:00:00Z", "created_by": "base"},
                    {"created": str(second), "created_by": step},
                    {"created": str(second), "created_by": "USER", "empty_layer": True}],
    }  # fmt: skip
    parts = {**layers, "config.json": json.dumps(told).encode()}
    parts["manifest.json"] = json.dumps([{"Config": "config.json", "Layers": list(layers)}]).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def base_digest() -> str:
    return f"sha256:{hashlib.sha256(layer(BASE_FILES, 1, user='root')).hexdigest()}"


def archive_of(folder: Path, second: int, **how: Any) -> tuple[Path, str]:
    folder.mkdir()
    save(folder / "saved.tar", second, **how)
    goal = folder / "image.tar"
    return goal, write_archive(folder / "saved.tar", goal, NAME, {base_digest()}, EPOCH_S)


def blobs(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as found:
        files = {member.name: found.extractfile(member) for member in found}
        return {name: file.read() for name, file in files.items() if file}


def test_builds_at_other_times_give_the_same_bytes_and_other_contents_another_digest(tmp_path: Path) -> None:
    one, first = archive_of(tmp_path / "one", 1_800_000_000)
    two, second = archive_of(tmp_path / "two", 1_800_000_777, backwards=True)
    _, third = archive_of(tmp_path / "three", 1_800_000_000, files={**FILES, "opt/b.py": b"print(1)\n"})
    assert (one.read_bytes() == two.read_bytes(), first == second, first == third) == (True, True, False)
    assert [path.name for path in (tmp_path / "one").iterdir() if path.name.startswith(".")] == []


def test_every_blob_is_what_its_digest_says_and_both_indexes_lead_to_the_layers(tmp_path: Path) -> None:
    archive, digest = archive_of(tmp_path / "one", 1_800_000_000)
    files = blobs(archive)
    for name, data in files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"
    (listed,) = json.loads(files["index.json"])["manifests"]
    assert listed["digest"] == digest
    manifest = json.loads(files[f"blobs/sha256/{digest.removeprefix('sha256:')}"])
    (old,) = json.loads(files["manifest.json"])
    assert old["RepoTags"] == [NAME]
    assert [f"blobs/sha256/{one['digest'].removeprefix('sha256:')}" for one in manifest["layers"]] == old["Layers"]
    diffs = [f"sha256:{hashlib.sha256(gzip.decompress(files[name])).hexdigest()}" for name in old["Layers"]]
    assert json.loads(files[old["Config"]])["rootfs"]["diff_ids"] == diffs
    assert diffs[0] == base_digest(), "the base's layer is not its own any more"


def test_the_configuration_keeps_what_runs_it_and_nothing_of_the_build(tmp_path: Path) -> None:
    archive, _ = archive_of(tmp_path / "one", 1_800_000_000)
    told = config_of(archive)
    assert told["config"] == {"User": "10001:10001", "Labels": {"a": "b"}}
    assert set(told) == {"architecture", "config", "created", "history", "os", "rootfs"}
    assert told["created"] == "2023-11-14T22:13:20Z"
    assert told["history"][0] == {"created": "2020-01-01T00:00:00Z", "created_by": "base"}
    assert told["history"][1] == {"created": told["created"], "created_by": "COPY dir in /opt"}
    assert "180000" not in json.dumps(told)


def test_a_file_is_read_as_the_last_layer_has_it(tmp_path: Path) -> None:
    archive, _ = archive_of(tmp_path / "one", 1, files={**FILES, "etc/os-release": b"ID=other\n"})
    assert layer_texts(archive, sbom.SUITE_FILE) == {"etc/os-release": "ID=other\n"}


def test_the_bill_of_materials_names_what_both_kinds_of_package_lists_say(tmp_path: Path) -> None:
    archive, digest = archive_of(tmp_path / "one", 1)
    text = sbom.of_image(archive, "sublet", "1.2.3", digest, EPOCH_S)
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert sorted(one["purl"] for one in bill["components"]) == [
        "pkg:deb/debian/libc6@2.36-9?arch=amd64",
        "pkg:pypi/a-package@1.0",
    ]
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert sbom.of_image(archive, "sublet", "1.2.3", digest, EPOCH_S) == text


def test_a_saved_file_that_holds_no_image_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "saved.tar", "w"):
        pass
    with pytest.raises(KeyError):
        write_archive(tmp_path / "saved.tar", tmp_path / "image.tar", NAME, (), EPOCH_S)
