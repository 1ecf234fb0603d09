"""The cluster's side as today's code has it: messages, the bucket's configuration, checkpoints, kinds and values."""

import json
import shutil
from pathlib import Path

from filled_messages import filled_messages

from services.central.core.config import encode_config
from services.central.core.recommendation.oom import OomKill
from services.central.core.recommendation.usage.checkpoint import stored
from services.central.core.recommendation.usage.samples import ContainerUsage

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
CONFIGURATION = {"mode": "observe", "advisor": {"policy": "percentile"}, "qrm": {"lease_s": 12}}
KILL = OomKill("team-a", "encode", "main", 1 << 30, 1_700_000_000.0)
MINUTE_S = 60.0


def usage() -> ContainerUsage:
    """What was seen of a container within two hours."""
    seen = ContainerUsage()
    for minute in range(90):
        memory_bytes = (100 + minute) << 20
        seen.see("1f3a-5b", 1_700_000_040.0 + minute * MINUTE_S, cpu_cores=1.5, memory_bytes=memory_bytes)
    return seen


def write_cluster(folder: Path) -> None:
    """Write all that centrals, agents and the chart of another version meet."""
    bodies = ({"message": name, "body": body} for name, body in filled_messages().items())
    (folder / "messages.jsonl").write_text("".join(f"{json.dumps(body, sort_keys=True)}\n" for body in bodies))
    (folder / "configuration.json").write_bytes(encode_config(CONFIGURATION))
    (folder / "usage-checkpoint.json").write_text(stored({"main": usage()}, [KILL]))
    shutil.copy(CHART / "values.yaml", folder / "values.yaml")
    (folder / "crds").mkdir()
    for kind in sorted((CHART / "crds").glob("*.yaml")):
        shutil.copy(kind, folder / "crds" / kind.name)
