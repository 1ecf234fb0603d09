"""Who gives a node back: an agent whose installation is gone, and never one that is only restarted."""

from pathlib import Path

import pytest
import typer
from kube_api import Api, FakeKube
from typer.testing import CliRunner

from services.qrm import main as qrm
from services.qrm.core.writes.outcome import Problem
from sublet.cluster.uninstalled import is_uninstalled
from sublet.commands import leave

PATH = "/apis/apps/v1/namespaces/sublet-system/daemonsets/sublet-node"
DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("daemonset", "status", "away", "uninstalled"),
    [
        ({}, 0, False, False),
        (DELETED, 0, False, True),
        (None, 0, False, True),
        ({}, 401, False, False),
        ({}, 403, False, False),
        (None, 401, False, False),
        (None, 403, False, False),
        ({}, 429, False, False),
        ({}, 500, False, False),
        ({}, 0, True, False),
        (None, 0, True, False),
    ],
)
async def test_the_node_is_given_back_only_where_nobody_would_come_back(
    daemonset: dict[str, dict[str, str]] | None, status: int, away: bool, uninstalled: bool
) -> None:
    api = Api()
    if daemonset is not None:
        api.put(PATH, daemonset)
    api.failing, api.away = status, away
    assert await is_uninstalled(FakeKube(api), "sublet-system", "sublet-node") is uninstalled


@pytest.mark.parametrize(("problems", "code"), [((), 0), ((Problem("/kubepods", "gone"),), 1)])
def test_with_the_installation_goes_what_was_learned_once_the_node_is_given_back(
    problems: tuple[Problem, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("policy-past.json", "ledger.db"):
        (tmp_path / name).touch()
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(qrm, "restore", lambda *_, **__: problems)
    app = typer.Typer()
    leave.register(app)
    assert CliRunner().invoke(app, ["--uninstalled"]).exit_code == code
    left = {"ledger.db"} if code == 0 else {"ledger.db", "policy-past.json"}
    assert {entry.name for entry in tmp_path.iterdir()} == left
