"""A later version reads the state of a node that an earlier one left: nothing lost, nothing half applied."""

import asyncio
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_messages import POD
from released_folders import RELEASED
from state_of_a_node import (
    ACCEPTED,
    BOOT,
    BUCKET,
    FORMER,
    LEASE,
    NODE,
    PLUGIN_RECORD,
    REFUSAL,
    TAINT,
    WALL_S,
    ledger_of,
)

from services.advisor.core.prediction.stored_margin import margins_of
from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.lease.file import read_lease
from services.reporter.core.mid.stored_past import past_of
from shared.adapters.files.pods import PodsFile
from shared.adapters.files.taints import TaintFile
from shared.adapters.ledger.reader import read_ledger
from shared.errors import Refused, Unavailable
from sublet.validation.findings import validate_settings
from sublet.validation.given import given_settings

VERSIONS = sorted(path for path in RELEASED.iterdir() if path.is_dir())


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A node's state folder as a version has left it."""
    return Path(shutil.copytree(request.param, tmp_path / "state"))


def test_the_checkpoint_says_what_was_in_force(state: Path) -> None:
    kept = CheckpointFile(state, NODE).load()
    assert kept is not None
    assert (kept.pools, kept.pods) == ({"share": "0-3", "reclaim": "4-7"}, {POD.uid: "4-5"})
    assert (kept.advice.reclaimed_cpu_millis, kept.advice.pools[0].cpus) == (44000, 8)


def test_every_former_value_is_given_back_as_it_was(state: Path) -> None:
    assert FormerValuesFile(state, BOOT).load() == FORMER


def test_the_lease_and_its_floor_are_those_that_were_written(state: Path) -> None:
    assert read_lease(state / "lease.json") == LEASE


def test_the_ledger_goes_on_where_it_stood(state: Path) -> None:
    ledger = ledger_of((state / "ledger.sql").read_text(), state)
    (live,) = ledger.live()
    assert (live.intent.model_dump(), live.pod.uid) == (ACCEPTED.intent.model_dump(), POD.uid)
    assert (live.step, live.attempts, live.accepted_at_s, live.hard) == ("accepted", 2, 110.0, True)
    assert ledger.next_episode() == ACCEPTED.intent.episode + 1
    assert (ledger.bucket("enforce"), ledger.records()) == (BUCKET, {"reclaimed": PLUGIN_RECORD})
    assert list(ledger.refusals()) == [REFUSAL]
    assert [(one.namespace, one.at_s) for one in ledger.spent()] == [("team-a", 110.0)]
    held = ledger.outgoing("fact-1")
    assert (held is not None and held.held, ledger.waiting_count()) == (True, 1)
    ledger.release("fact-1")
    assert [one.fact_id for one in ledger.waiting(9)] == ["fact-1"]
    ledger.close()
    (entry,) = read_ledger(state)
    assert (set(entry.waiting), dict(entry.sent)) == ({"fact-1"}, {"fact-2": 12})


def test_what_a_policy_has_learned_goes_on(state: Path) -> None:
    found, why = margins_of((state / "policy-past.json").read_bytes(), WALL_S + 60)
    assert (why, found["share"].learned_s) == ("", 36.0)


def test_what_pods_have_used_goes_on(state: Path) -> None:
    found, why = past_of((state / "usage-past.json").read_bytes(), 0.0, WALL_S + 60)
    assert (why, found.models[POD.uid].minutes) == ("", 3)


def test_the_pods_and_taints_are_those_that_were_written(state: Path) -> None:
    assert PodsFile(state).pods() == [POD]
    assert asyncio.run(TaintFile(state).read()) == (TAINT,)


def test_a_settings_file_of_every_key_is_taken(state: Path) -> None:
    verdict = validate_settings(given_settings({}, state / "settings.yaml"))
    assert [str(finding) for finding in verdict.findings] == []


def _sealed_with(path: Path, **fields: Any) -> None:
    envelope = json.loads(path.read_text())
    body = json.dumps(json.loads(envelope["body"]) | fields)
    path.write_text(json.dumps(envelope | {"body": body, "checksum": hashlib.sha256(body.encode()).hexdigest()}))


def test_after_a_rollback_what_a_later_version_wrote_is_refused_whole_and_kept_aside(state: Path) -> None:
    _sealed_with(state / "checkpoint.json", a_later_field=1)
    with pytest.raises(Refused, match="rebuilt from the kernel"):
        CheckpointFile(state, NODE).load()
    _sealed_with(state / "former-values.json", a_later_field=1)
    with pytest.raises(Refused, match="given back as new groups have it"):
        FormerValuesFile(state, BOOT).load()
    assert {path.name for path in state.glob("*.refused")} == {"checkpoint.json.refused", "former-values.json.refused"}
    later = json.loads((state / "policy-past.json").read_text()) | {"version": 2}
    found, why = margins_of(json.dumps(later).encode(), WALL_S + 60)
    assert (found, "version" in why) == ({}, True)


def test_after_a_rollback_a_ledger_of_a_later_format_is_left_alone(state: Path) -> None:
    text = (state / "ledger.sql").read_text().replace("user_version = 2", "user_version = 3")
    with pytest.raises(Unavailable, match="written in format 3, this is 2"):
        ledger_of(text, state)
    assert [path.name for path in state.glob("ledger.db.broken*")] == []


def test_a_setting_that_is_not_known_here_is_refused_by_name(state: Path) -> None:
    document = yaml.safe_load((state / "settings.yaml").read_text()) | {"a_later_setting": 1}
    (state / "settings.yaml").write_text(yaml.safe_dump(document))
    verdict = validate_settings(given_settings({}, state / "settings.yaml"))
    assert any("a_later_setting" in str(finding) for finding in verdict.findings)
