"""What lies below /usr/share besides the program: manual pages and completions, as an archive and in the package."""

import gzip
import tempfile
from pathlib import Path

from deploy.artifacts.checkout import Checkout, pack
from deploy.artifacts.completions import scripts
from deploy.artifacts.manual import pages


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Pack both; the archive's file."""
    name = f"sublet-{checkout.version}-share"
    with tempfile.TemporaryDirectory(prefix="sublet-share-") as folder:
        write(checkout, Path(folder))
        return [pack(Path(folder), goal / f"{name}.tar.gz", checkout.epoch_s, "share")]


def write(checkout: Checkout, share: Path) -> None:
    """Write them where programs look for them below `share`; manual pages are compressed."""
    files = {place: text.encode() for place, text in scripts().items()}
    for name, text in pages(checkout.version, checkout.epoch_s).items():
        files[f"man/man1/{name}.gz"] = gzip.compress(text.encode(), mtime=checkout.epoch_s)
    for place, data in files.items():
        path = share / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
