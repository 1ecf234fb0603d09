"""Lines of the chart that name every service: which sections of the values go to central."""

from collections.abc import Iterator

from shared.contracts.deploy.block import Block
from shared.contracts.services import NODE_SERVICES


def central_config() -> Iterator[Block]:
    """Which sections the file with central's settings leaves out."""
    names = " ".join(f'"{name}"' for name in NODE_SERVICES)
    yield Block(
        r"\{\{- \$own := omit \.Values\.settings .*",
        (f"{{{{- $own := omit .Values.settings {names} }}}}",),
    )
