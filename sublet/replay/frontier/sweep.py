"""A sweep makes one row of each combination of settings: `NAME[=ALIAS]:KEY=V|V,KEY=V|V`.

Without settings a contender is swept over what moves it along its frontier: a policy over the common reserve, or over
its own margin where it owns its reserve, a peer over its thresholds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from services.advisor.core.policy import PolicySettings
from services.advisor.registry import known_policies
from shared.errors import BadConfig
from sublet.replay.contender import policy_of
from sublet.replay.oracle import ORACLE
from sublet.replay.peers import PEERS

MAX_ROWS = 256
COMMON_SWEEP = "reserve_cores=0|1|2|3|4|6|8|12"
OWN_SWEEPS: Mapping[str, str] = {
    "margin_factor": "0.05|0.5|2.5|3.25|3.5|4|4.25|4.5|4.75|5|5.5|9",
    "min_margin_percent": "0|4|5|8|10|15|24|30",
}
"""Of a policy that owns its reserve: values of the settings that take the reserve's place, learned or fixed."""
PEER_SWEEPS: Mapping[str, str] = {
    "katalyst": "reserve=0|1|2|3|4|6|8|12",
    "koordinator": "suppress=65|80|85|90|95,reclaim=60|75|85|90|95",
}


@dataclass(frozen=True, slots=True)
class Family:
    """One policy or peer at all settings of its sweep."""

    option: str
    name: str
    texts: tuple[str, ...]
    """One for each row, as `--policy` or `--peer` takes it."""
    settings: Mapping[str, str]
    """What a row is set to, by the row's name."""


def families_of(policies: Sequence[str], peers: Sequence[str]) -> list[Family]:
    """The families of these policies and peers; of every policy where none is named, of every peer likewise.

    Raises:
        BadConfig: there is no such policy, or more rows than anybody would wait for.
    """
    found = [_family("--policy", text, _sweep_of_policy(text)) for text in policies or known_policies()]
    taken = {family.name for family in found}
    for text in peers or PEERS:
        head, colon, settings = text.partition(":")
        # Beside a policy of the same name the peer's family says what it is.
        named = f"{head}={head} (peer)" if head in taken else head
        found.append(_family("--peer", f"{named}{colon}{settings}", PEER_SWEEPS.get(head.partition("=")[0], "")))
    rows = sum(len(family.texts) for family in found)
    if rows > MAX_ROWS:
        raise BadConfig(f"--frontier: {rows} rows, at most {MAX_ROWS}: sweep fewer values", reason="invalid")
    return found


def texts_of(families: Sequence[Family]) -> tuple[list[str], list[str]]:
    """The rows of the families, as `--policy` and as `--peer` take them."""
    policies = [text for family in families if family.option == "--policy" for text in family.texts]
    return policies, [text for family in families if family.option == "--peer" for text in family.texts]


def _sweep_of_policy(text: str) -> str:
    name, colon, _ = text.partition(":")
    if colon:
        return ""
    policy = policy_of(name).choice.policy
    return COMMON_SWEEP if policy.reserve == "common" else own_sweep(policy.settings)


def own_sweep(settings: type[PolicySettings]) -> str:
    """The sweep of a policy that owns its reserve; none where it has no setting that is known to be its margin."""
    return ",".join(f"{key}={values}" for key, values in OWN_SWEEPS.items() if key in settings.model_fields)


def _family(option: str, text: str, usual: str) -> Family:
    head, _, given = text.partition(":")
    name, _, alias = head.partition("=")
    family = alias or name
    keys, values = [], []
    for item in filter(None, (given or usual).split(",")):
        key, equals, swept = item.partition("=")
        if not equals:
            raise BadConfig(f"{option} {text}: want NAME:key=value|value,key=value, not {item!r}", reason="invalid")
        keys.append(key.strip())
        values.append(swept.split("|"))
    count = 1
    for swept_values in values:
        count *= len(swept_values)
    if count > MAX_ROWS:
        raise BadConfig(f"{option} {text}: {count} rows, at most {MAX_ROWS}: sweep fewer values", reason="invalid")
    settings, texts = {}, []
    for chosen in product(*values):
        label = ",".join(f"{key}={value}" for key, value in zip(keys, chosen, strict=True))
        row = f"{family} {label}".strip()
        settings[row] = label
        texts.append(f"{name}={row}" + (f":{label}" if label else ""))
    if name == ORACLE:
        settings, texts = {family: ""}, [text]
    return Family(option, family, tuple(texts), settings)
