"""`--dry-run` says what would change and changes no file; `--watch` looks again until it is told to stop."""

from pathlib import Path

import pytest
from wrong_inputs import application, attempt, machine, row, written

from services.central.core.config import encode_config
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
from shared.fakes.memory_bus import MemoryBus
from sublet.ask import AskTarget
from sublet.configuration import publishing
from sublet.configuration.publishing import Wanted, publish
from sublet.exit_codes import OK
from sublet.terminal import watch as watching
from sublet.terminal.watch import PERIOD_S, watched


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("pause --dry-run", 3, "evictions.paused would be written, evictions would be paused; go on with"),
        ("pause --for 30m --dry-run", 3, "they go on by themselves at"),
        ("resume --dry-run", 3, "evictions.paused is not there, nothing would change"),
        (
            "policy new halfway --dry-run",
            0,
            "sublet-policy-halfway/sublet_policy_halfway.py would be written (dry run)",
        ),
        ("plugin new calm --dry-run", 0, "sublet-plugin-calm/pyproject.toml would be written (dry run)"),
        ("up --substrate sim --scenario tide --dry-run", 0, "the six services would be started as node node1 on a sim"),
        ("down --dry-run", 1, "this machine lacks"),
        ("up --substrate sim --scenario nope --dry-run", 2, "nope"),
        ("policy new canonical --dry-run", 2, "Sublet has one of this name itself"),
    ],
)
def test_nothing_is_written_and_it_is_said_what_would_be(tmp_path: Path, typed: str, code: int, words: str) -> None:
    app = application()
    with machine(tmp_path):
        before = written(tmp_path)
        answer = attempt(app, row(typed, code, words))
        assert (answer.code, words in answer.out + answer.err) == (code, True), answer
        assert written(tmp_path) == before


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"qrm": {"mode": "observe"}}, "would be written and published as a revision (dry run)"),
        ({"qrm": {"mode": "enforce"}}, "says what revision 1 says: nothing would change (dry run)"),
        ({}, "after a question, "),
    ],
)
async def test_a_configuration_is_compared_and_not_published(
    document: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    goal = tmp_path / "config.yaml"
    monkeypatch.setattr(publishing, "own_config_file", lambda: goal)

    async def central(*_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr(publishing, "ask", central)
    bus = MemoryBus()
    await bus.ensure_bucket(CONFIG_BUCKET)
    await bus.put(CONFIG_BUCKET, GLOBAL_CONFIG_KEY, encode_config({"qrm": {"mode": "enforce"}}))
    wanted = Wanted("", document, "c.yaml", dry_run=True)
    assert await publish(bus, AskTarget("n", ""), wanted) == OK
    assert words in capsys.readouterr().out
    assert not goal.exists()
    entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
    assert (entry.revision if entry else 0) == 1


class Enough(Exception):
    """Ends what goes on."""


async def test_a_watch_looks_again_after_its_period_until_it_is_ended() -> None:
    seen: list[object] = []

    async def look() -> int:
        seen.append("look")
        return OK

    async def wait(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) >= 6:
            raise Enough

    with pytest.raises(Enough):
        await watched(look, watch=True, wait=wait)
    assert seen == ["look", PERIOD_S] * 3
    assert await watched(look, watch=False, wait=wait) == OK
    assert len(seen) == 7


def test_the_help_of_watch_says_the_period() -> None:
    assert f"every {PERIOD_S:g} s" in watching.Watch.__metadata__[0].help  # type: ignore[attr-defined]
