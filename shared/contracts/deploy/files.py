"""Files of `deploy` with lines that follow from the tables of channels and services."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from shared.contracts.deploy.block import Block
from shared.contracts.deploy.server_lines import compose, hub
from shared.contracts.deploy.service_lines import central_config

FILES: Mapping[str, Callable[[], Iterator[Block]]] = {
    "deploy/k8s/chart/templates/bus/config.yaml": hub,
    "deploy/compose/nats.conf": compose,
    "deploy/k8s/chart/templates/central/config.yaml": central_config,
}


def written(root: Path) -> dict[Path, str]:
    """The files as they shall be, from those that there are."""
    found = {}
    for name, blocks in FILES.items():
        text = (root / name).read_text()
        for block in blocks():
            text = block.in_place(text)
        found[root / name] = text
    return found
