"""The chart's rules and boards, and every query in them."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy/k8s/chart/monitoring/rules.yaml"
GROUPS = yaml.safe_load(RULES.read_text())["groups"]


def loaded_boards() -> Any:
    spec = importlib.util.spec_from_file_location("boards", ROOT / "deploy/k8s/boards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["boards"] = module
    spec.loader.exec_module(module)
    return module


boards = loaded_boards()


def queries() -> Iterator[tuple[str, str]]:
    for rule in (rule for group in GROUPS for rule in group["rules"]):
        yield rule.get("alert") or rule["record"], rule["expr"]
    for board in boards.ALL:
        for panel in board.panels:
            for expr, _ in panel.queries:
                yield f"{board.name}: {panel.title}", expr
