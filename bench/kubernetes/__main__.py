"""`make bench-kubernetes`: all measurements, or those named, on a real kubelet; as root, takes 40 minutes.

Prints one table with machine and N, and keeps it in out/bench.
"""

import argparse
import sys
from collections.abc import Iterator

from kube_rig.cluster import CLUSTER, running
from kube_rig.images import build_product
from kube_rig.product import Product
from rig.packages import RigMissing

from bench.kubernetes.cost import Plan
from bench.kubernetes.parts import PARTS, Bench
from bench.rigs.report import Row, Run, add_options, progress, publish, run_before, stage, tell
from shared.errors import Refused

NAME = "kubernetes"


def main() -> int:
    """Measure these parts, and print."""
    usual = Plan()
    words = argparse.ArgumentParser(prog="make bench-kubernetes", description=__doc__)
    words.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    words.add_argument("--pods", type=int, help="so many instead of the part's own number")
    words.add_argument("--runs", type=int, default=usual.runs, help="whose median is the figure")
    words.add_argument("--span", type=float, default=usual.span_s, metavar="S", help="seconds of a run")
    words.add_argument("--rest", type=float, default=usual.rest_s, metavar="S", help="seconds before the first run")
    words.add_argument("--spikes", type=int, default=usual.spikes, help="of each series of the part reaction")
    add_options(words)
    chosen = words.parse_args()
    if unknown := [name for name in chosen.parts if name not in PARTS]:
        words.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    plan = Plan(chosen.rest, chosen.span, chosen.runs, chosen.spikes)
    rows: list[Row] = []
    try:
        CLUSTER.require_tools()
        before = run_before(NAME, chosen.against)
        try:
            for found in _measured(chosen.parts or list(PARTS), plan, chosen.pods):
                rows += found
                tell(found)
        finally:  # what was measured before a part failed, or was interrupted, is worth its minutes
            progress("")
            if rows:
                publish(Run.here(NAME, rows), before, chosen.output)
    except (RigMissing, Refused) as error:
        print(f"bench-kubernetes: {error}", file=sys.stderr)
        return 2
    return 0


def _measured(names: list[str], plan: Plan, pods: int | None) -> Iterator[list[Row]]:
    with CLUSTER.cache_held() as cache:
        image = build_product(cache, stage)
        with running(cache, stage) as cluster:
            cluster.node.load(image.archive)
            for name in names:
                yield PARTS[name](Bench(cluster, Product(cluster), plan, pods))


if __name__ == "__main__":
    sys.exit(main())
