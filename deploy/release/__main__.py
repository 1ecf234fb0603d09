"""`python -m deploy.release VERSION`: release this checkout; with --dry-run say what would be done."""

import argparse
import sys
from pathlib import Path

from deploy.artifacts.checkout import ROOT, BuildError, ToolMissing
from deploy.release.steps import Release
from deploy.release.texts import NotReleasable


def main() -> int:
    """Release; 1 where something stands against it, which is named, and nothing has changed then."""
    options = argparse.ArgumentParser(prog="python -m deploy.release", description=main.__doc__)
    options.add_argument("version", help="MAJOR.MINOR.PATCH")
    options.add_argument("--dry-run", action="store_true", help="check, say what would be done, and change nothing")
    options.add_argument("--folder", type=Path, default=ROOT, help="the checkout; this one")
    given = options.parse_args()
    try:
        release = Release(given.folder.resolve(), given.version)
        release.check()
        if given.dry_run:
            print("\n".join(f"would {step}" for step in release.plan()))
        else:
            release.make(lambda line: print(f"release: {line}", flush=True))
    except (NotReleasable, BuildError, ToolMissing) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
