"""The navigation of the site: every page of `docs` has its place here."""

from pathlib import Path

Tree = dict[str, "str | Tree"]
ROOT = Path(__file__).resolve().parents[2]


def _titled(folder: str) -> Tree:
    """The pages of a folder by their titles."""
    pages = sorted(page for page in (ROOT / folder).glob("*.md") if page.name != "README.md")
    return {page.read_text().splitlines()[0].lstrip("# "): str(page.relative_to(ROOT)) for page in pages}


NAVIGATION: Tree = {
    "Start": {
        "Sublet": "index.md",
        "Install in five minutes": "docs/install.md",
        "Concepts": "docs/concepts.md",
        "One Linux host": "docs/host.md",
        "Kubernetes": "docs/kubernetes.md",
        "The simulated machine": "docs/simulator.md",
        "Docker Compose": "deploy/compose/README.md",
        "Comparison": "docs/comparison.md",
    },
    "Extend": {
        "A sizing policy": "docs/writing-a-policy.md",
        "An eviction plugin": "docs/writing-an-eviction-plugin.md",
        "A subscriber": "docs/subscribing.md",
        "A metrics source": "docs/writing-a-source.md",
        "A report field": "docs/writing-a-field.md",
        "A message": "docs/writing-a-message.md",
        "A service": "docs/writing-a-service.md",
        "What a wheel may import": "docs/api.md",
    },
    "Operate": {
        "Evictions": "docs/evictions.md",
        "Monitoring": "docs/monitoring.md",
        "Traces and logs": "docs/tracing.md",
        "Questions and troubles": "docs/troubleshooting.md",
        "Live page": "docs/live-page.md",
        "State": "docs/state.md",
        "Upgrade and rollback": "docs/upgrading.md",
        "Kinds of nodes": "docs/kubernetes-kinds.md",
        "Versions of Kubernetes": "docs/kubernetes-versions.md",
        "Quick start on 48 CPUs": "docs/quick-start-transcript.md",
        "The node": {
            "Isolation": "docs/isolation.md",
            "Shared CPUs": "docs/shared-cpus.md",
            "Cycles per instruction": "docs/cpi.md",
        },
        "The cluster": {
            "Placement": "docs/scheduling.md",
            "Recommended requests": "docs/recommendation.md",
            "Service profiles": "docs/service-profiles.md",
            "Custom metrics": "docs/custom-metrics.md",
            "Over-committed nodes": "docs/overcommit.md",
            "Tide pools": "docs/tide.md",
            "Replica bounds by the clock": "docs/clock-bounds.md",
        },
        "Policies": {
            "adaptive": "docs/adaptive-policy.md",
            "model": "docs/model-policy.md",
            "Record and replay": "docs/replay.md",
        },
        "Runbooks": _titled("docs/runbooks"),
    },
    "Move": {
        "From Katalyst or Koordinator": "docs/migrating.md",
        "Coming from Koordinator": "docs/koordinator.md",
    },
    "Reference": {
        "Commands": "docs/reference/cli.md",
        "Exit codes": "docs/exit-codes.md",
        "Settings": "docs/settings.md",
        "Metrics": "docs/metrics.md",
        "Messages": "docs/reference/messages.md",
        "Kinds of objects": "docs/reference/crds.md",
        "Rights": "docs/reference/rights.md",
        "Log lines": "docs/reference/logs.md",
        "Values of the chart": "docs/reference/chart.md",
    },
    "Project": {
        "Architecture": "docs/architecture.md",
        "The simulation": "docs/simulation.md",
        "Contributing": "CONTRIBUTING.md",
        "Security": "SECURITY.md",
        "Changes": "CHANGELOG.md",
        "Dependencies": "docs/dependencies.md",
        "Licenses": "docs/licenses.md",
        "Conduct": "CODE_OF_CONDUCT.md",
        "Decisions": _titled("docs/adr"),
        "Facts and sources": {"About facts": "docs/facts/README.md"} | _titled("docs/facts"),
    },
}
