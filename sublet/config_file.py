"""Finds the file from which central reads the configuration of all nodes, from its settings and never from a
message."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.settings import raw_settings
from sublet.bus_login import read_own_json
from sublet.instance import RECORD, writable_settings


def central_config_file(raw: Mapping[str, Any], state_dir: Path) -> Path:
    """The one that these settings name, else the one in the state folder."""
    central = raw.get("central")
    named = central.get("config_file") if isinstance(central, Mapping) else None
    return Path(str(named)) if named else state_dir / "config.yaml"


def own_config_file() -> Path:
    """By this command's settings; where they name none, as the `sublet up` that runs in their state folder noted."""
    raw, state_dir = raw_settings(), writable_settings().state_dir
    meant = central_config_file(raw, state_dir)
    noted = read_own_json(state_dir / RECORD).get("config_file")
    return Path(noted) if meant == state_dir / "config.yaml" and isinstance(noted, str) else meant
