"""Lines of the chart that name every service: which sections its values may have, and which go to central."""

from collections.abc import Iterator

from shared.contracts.deploy.block import Block
from shared.contracts.services import NODE_SERVICES


def values_schema() -> Iterator[Block]:
    """The sections of the node's services; central's stands behind them."""
    names = "|".join(NODE_SERVICES)
    yield Block(
        rf'"(?:{names})": \{{ "type": "object" \}},',
        tuple(f'"{name}": {{ "type": "object" }},' for name in NODE_SERVICES),
    )


def central_config() -> Iterator[Block]:
    """Which sections the file with central's settings leaves out."""
    names = " ".join(f'"{name}"' for name in NODE_SERVICES)
    yield Block(
        r"\{\{- toYaml \(omit \.Values\.settings .*",
        (f"{{{{- toYaml (omit .Values.settings {names}) | nindent 4 }}}}",),
    )
