"""The state of a node as today's code writes it: every file that outlives an upgrade, with a value in every field."""

import asyncio
import sqlite3
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from example_messages import EXAMPLES, INTENT, POD
from pydantic_core import to_jsonable_python

from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.core.prediction.stored_margin import margins_text
from services.advisor.policies.adaptive import AdaptiveSettings
from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.lease import file as leases
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.writes.plan import Sets, WantedSets
from services.reporter.core.mid.peaks import UsageHistory, UsedAmounts
from services.reporter.core.mid.stored_past import past_text
from shared.adapters.files.pods import PodsFile
from shared.adapters.files.taints import TaintFile
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.contracts.advice import PoolAdvice
from shared.contracts.kube.taint import TAINT_PREFIX, Cause, Taint
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet
from shared.core.evictions.intents import Call, IntentRecord, KeptRefusal, Outgoing, Record, TokenBucket
from shared.settings import inner_model
from sublet.settings_page.sections import sections

NODE, BOOT = "ip-10-0-0-1.ec2.internal", "b2f6c1de-0000-4000-8000-0123456789ab"
WALL_S = 1_800_000_000.0
OF_THIS_HOST = frozenset({"node", "state_dir"})
"""Settings whose default is another one on each machine."""
WITHOUT_DEFAULT = {"url": "nats://asker:word@sublet-bus:4222", "issuer": "0123456789abcdef"}
"""What the sections want that are there only where they are given."""
FORMER = (
    FormerValue(group="kubepods/burstable/pod1f3a-5b", knob=Knob.CPU_SHARES, value=1024),
    FormerValue(group="kubepods/besteffort", knob=Knob.MEMORY_MAX, device="8:0", value=-1, wrote=(1 << 30, 2 << 30)),
)
LEASE = leases.Lease(
    4000.5, BOOT, {"kubepods/besteffort": WantedSets(Sets(CpuSet.parse("6-7"), CpuSet.parse("0")), 1, own=True)}, "top"
)
TAINT = Taint(
    key=f"{TAINT_PREFIX}memory-pressure", effect="NoSchedule", time_added=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    causes=(Cause(plugin="memory", scope="memory", observed=1.5, threshold=2.5),),
)  # fmt: skip
LIVE = IntentRecord(INTENT, POD, hard=True, opened_at_s=100.0)
ACCEPTED = replace(LIVE, step="accepted", attempts=2, accepted_at_s=110.0, detail="on its way")
REFUSAL = KeptRefusal("team-a/encode", POD.uid, "reclaimed", "budget", "3 of 3 evictions", 7, 90.0, 99.0)
BUCKET, PLUGIN_RECORD = TokenBucket(3.5, 7.0), Record(2, 95.0)


def write_state(folder: Path) -> None:
    """Write all files of a node's state folder that are read by a later life."""
    advice = EXAMPLES["PoolAdvice"]
    assert isinstance(advice, PoolAdvice)
    CheckpointFile(folder, NODE).save(advice, {"share": "0-3", "reclaim": "4-7"}, {POD.uid: "4-5"})
    FormerValuesFile(folder, BOOT).save(FORMER)
    leases.write_lease(folder / leases.FILE, LEASE)
    margin = LearnedMargin()
    for number, need_cores in enumerate((5.0, 6.0, 9.0, 5.5)):
        margin = margin.observe(need_cores, 12.0 * number, 48, AdaptiveSettings().rules.learning)
    (folder / "policy-past.json").write_bytes(margins_text({"share": margin}, WALL_S))
    history = UsageHistory()
    for minute, used in enumerate((100, 900, 300, 0)):
        history.observe({POD.uid: UsedAmounts(used, used << 20)}, minute * 60.0)
    (folder / "usage-past.json").write_bytes(past_text(history, WALL_S))
    PodsFile(folder).write([POD])
    asyncio.run(TaintFile(folder).write([TAINT]))
    (folder / "ledger.sql").write_text(_ledger_text())
    (folder / "settings.yaml").write_text(yaml.safe_dump(default_settings()))


def default_settings() -> dict[str, Any]:
    """Every key of every section with its default, as a settings file that names them all."""
    document: dict[str, Any] = {}
    for section in sections():
        fields = section.model.model_fields
        if any(field.is_required() and name not in WITHOUT_DEFAULT for name, field in fields.items()):
            continue  # it is there only where somebody gives all of it
        here = document
        for step in section.path:
            here = here.setdefault(step, {})
        for name, field in fields.items():
            default = field.get_default(call_default_factory=True, validated_data={})
            value = default if section.values is None else getattr(section.values, name)
            if field.is_required():
                here[name] = WITHOUT_DEFAULT[name]
            elif name not in OF_THIS_HOST and (inner_model(field) is None or isinstance(value, str)):
                here[name] = to_jsonable_python(value)
    return document


def _ledger_text() -> str:
    """What the evictor has written, as SQL: the file itself differs with the version of SQLite."""
    with tempfile.TemporaryDirectory() as name:
        ledger = SqliteLedger(Path(name))
        ledger.open(first_episode=INTENT.episode)
        ledger.keep_refusals([REFUSAL])
        ledger.begin(LIVE, BUCKET, [Outgoing("fact-1", "sublet.x", INTENT.encode(), {"ce-id": "fact-1"}, held=True)])
        ledger.advance(
            ACCEPTED, [Outgoing("fact-2", "sublet.x", b"{}", {"Nats-Msg-Id": "sent-2"})],
            calls=[Call("evict", "accepted", "on its way")], now_s=110.0, plugin_record=PLUGIN_RECORD,
        )  # fmt: skip
        ledger.published("fact-2", sequence=12, now_s=111.0)
        version = ledger.db.execute("PRAGMA user_version").fetchone()[0]
        text = "\n".join((*ledger.db.iterdump(), f"PRAGMA user_version = {version};", ""))
        ledger.close()
    return text


def ledger_of(text: str, folder: Path) -> SqliteLedger:
    """The ledger of such a text, open."""
    db = sqlite3.connect(folder / "ledger.db")
    db.executescript(text)
    db.close()
    ledger = SqliteLedger(folder)
    assert ledger.open(first_episode=999) == ""
    return ledger
