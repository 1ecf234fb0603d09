"""`sublet replay --frontier`: which rows there are, which of them are best, and what is said of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from services.advisor.core.policy import PolicySettings
from services.advisor.registry import known_policies
from shared.errors import BadConfig
from sublet.commands import replay
from sublet.replay import generate
from sublet.replay.batch import BatchRules
from sublet.replay.frontier.best import best_within, frontier_rows
from sublet.replay.frontier.sweep import MAX_ROWS, families_of, own_sweep, texts_of
from sublet.replay.rows import rows_of

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    path = tmp_path / "small.jsonl.gz"
    with path.open("wb") as out:
        generate.write(out, seed=5, length_s=60.0)
    app = typer.Typer()
    app.command()(replay.replay)
    return lambda *arguments: CliRunner().invoke(app, [str(path), "--frontier", *map(str, arguments)])


def figures(name: str, runs: float, ppm: float | None, evictions: int = 0) -> dict[str, Any]:
    return {"name": name, "batch_core_hours": runs, "violation_ppm": ppm, "evictions": evictions}


def test_every_policy_and_peer_is_swept_and_every_row_has_a_name_of_its_own() -> None:
    families = families_of([], [])
    names = [family.name for family in families]
    assert set(known_policies()) <= set(names)
    assert {"katalyst", "koordinator", "koordinator (peer)"} <= set(names)
    assert all(len(family.texts) > 1 for family in families)
    rows = [row.name for row in rows_of(*texts_of(families), BatchRules())]
    assert len(set(rows)) == len(rows) == 1 + sum(len(family.texts) for family in families)
    assert set(rows[1:]) == {row for family in families for row in family.settings}


def test_a_sweep_of_ones_own_is_the_product_of_its_values() -> None:
    (family, _) = families_of(["canonical=mine:usage_factor=1|1.5,reserve_cores=0|4"], ["oracle"])
    assert (family.name, list(family.settings)[1]) == ("mine", "mine usage_factor=1,reserve_cores=4")
    assert list(family.settings.values())[-1] == "usage_factor=1.5,reserve_cores=4"
    one = rows_of(*texts_of([family]), BatchRules())[4]
    assert one.name == "mine usage_factor=1.5,reserve_cores=4"


def test_a_policy_that_owns_its_reserve_is_swept_over_its_margin() -> None:
    class Margin(PolicySettings):
        margin_factor: float = 4.0

    (sweep,) = own_sweep(Margin)
    assert sweep.startswith("margin_factor=")
    assert "," not in sweep
    assert own_sweep(PolicySettings) == ()
    (adaptive, *_) = families_of(["adaptive"], ["oracle"])
    assert "margin_factor=4,min_margin_percent=0" in adaptive.settings.values(), "as it is by default"
    assert "margin_factor=0.05,min_margin_percent=15" in adaptive.settings.values(), "a fixed part of the machine"
    limited = "margin_factor=0.05,min_margin_percent=0,max_offer_percent=75"
    assert limited in adaptive.settings.values(), "a fixed limit of the offer"


@pytest.mark.parametrize(
    ("policies", "peers", "word"),
    [
        (["canonical:usage_factor"], [], "want NAME:key=value|value"),
        (["nothing"], [], "nothing"),
        ([f"canonical:reserve_cores={'|'.join(map(str, range(MAX_ROWS + 1)))}"], [], f"at most {MAX_ROWS}"),
        (["canonical:" + ",".join(f"k{n}={'|'.join('ab' * 8)}" for n in range(40))], [], f"at most {MAX_ROWS}"),
    ],
)
def test_a_sweep_that_cannot_be_made_is_refused(policies: list[str], peers: list[str], word: str) -> None:
    with pytest.raises(BadConfig) as refusal:
        families_of(policies, peers)
    assert word in str(refusal.value)


def test_within_a_budget_the_row_that_runs_most_is_best() -> None:
    rows = [figures("a", 5.0, None), figures("b", 7.0, 10.0, 9), figures("c", 7.0, 10.0, 2), figures("d", 9.0, 11.0)]
    assert [(best_within(rows, budget) or {}).get("name") for budget in (0, 10, 11)] == ["a", "c", "d"]
    assert best_within([figures("d", 9.0, 11.0)], 10) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_laws_of_the_frontier(points: list[tuple[int, int]]) -> None:
    """Somebody is on it; whoever is not is beaten by somebody who is; and the best at any budget is on it."""
    rows = [figures(str(n), runs, ppm) for n, (runs, ppm) in enumerate(points)]
    best = frontier_rows(rows)
    on = [row for row in rows if row["name"] in best]
    assert on
    for row in rows:
        as_good = [
            b
            for b in on
            if b["batch_core_hours"] >= row["batch_core_hours"] and b["violation_ppm"] <= row["violation_ppm"]
        ]
        assert as_good
    most = best_within(rows, 5)
    assert most is not None
    assert most["batch_core_hours"] == max(runs for runs, _ in points)


def test_the_document_says_each_rows_family_and_each_familys_best(run: Run) -> None:
    result = run("--policy", "canonical:reserve_cores=0|40", "--peer", "koordinator:suppress=65|95", "-o", "json")
    found = json.loads(result.stdout)
    assert [(row["family"], row["settings"]) for row in found["rows"]] == [
        ("static", ""),
        ("canonical", "reserve_cores=0"),
        ("canonical", "reserve_cores=40"),
        ("koordinator", "suppress=65"),
        ("koordinator", "suppress=95"),
    ]
    assert any(row["on_frontier"] for row in found["rows"])
    families = {family["name"]: family for family in found["families"]}
    assert [best["budget_ppm"] for best in families["canonical"]["best"]] == [10, 100, 1000]
    assert families["canonical"]["rows"] == 2
    for best in families["canonical"]["best"]:
        assert best["row"] is None or best["violation_ppm"] <= best["budget_ppm"]


def test_the_table_has_a_line_for_each_family_and_the_page_a_curve(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    result = run("--policy", "canonical", "--peer", "katalyst", "--plot", page)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[3].startswith("FAMILY")
    assert [line.split()[0] for line in lines[4:7]] == ["static", "canonical", "katalyst"]
    assert "NO OTHER RUNS MORE AT AS FEW VIOLATIONS" in result.stdout
    text = page.read_text()
    assert '"curve":"canonical"' in text.replace('": "', '":"')
    assert text.count('data-chart="') == 1
    run("--policy", "canonical", "--peer", "katalyst", "--plot", page)
    assert page.read_text() == text
