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
OWN_SWEEPS: Sequence[Mapping[str, str]] = (
    {
        "margin_factor": "0.05|0.5|1|1.5|2|2.5|2.75|3|3.25|3.5|3.75|4|4.25|4.5|4.75|5|5.5|6|7|9|12",
        "min_margin_percent": "0",
    },
    {
        "margin_factor": "0.05",
        "min_margin_percent": "0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|18|20|22|24|27|30|34|38|42",
    },
    {
        "margin_factor": "0.05",
        "min_margin_percent": "0|4|11|18|30|42",
        "max_offer_percent": "50|60|70|75|80|85|90|95",
    },
)
"""Of a policy that owns its reserve: values of the settings that take the reserve's place. The margin is learned, or
fixed in fine steps: both together tell little more. Then a fixed one with a limit of the offer, which pays where needs
move fast and far."""
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
    found = [_family("--policy", text, _sweeps_of_policy(text)) for text in policies or known_policies()]
    taken = {family.name for family in found}
    for text in peers or PEERS:
        head, colon, settings = text.partition(":")
        # Beside a policy of the same name the peer's family says what it is.
        named = f"{head}={head} (peer)" if head in taken else head
        usual = [PEER_SWEEPS.get(head.partition("=")[0], "")]
        found.append(_family("--peer", f"{named}{colon}{settings}", usual))
    rows = sum(len(family.texts) for family in found)
    if rows > MAX_ROWS:
        raise BadConfig(f"--frontier: {rows} rows, at most {MAX_ROWS}: sweep fewer values", reason="invalid")
    return found


def texts_of(families: Sequence[Family]) -> tuple[list[str], list[str]]:
    """The rows of the families, as `--policy` and as `--peer` take them."""
    policies = [text for family in families if family.option == "--policy" for text in family.texts]
    return policies, [text for family in families if family.option == "--peer" for text in family.texts]


def _sweeps_of_policy(text: str) -> tuple[str, ...]:
    name, colon, _ = text.partition(":")
    if colon:
        return ()
    policy = policy_of(name).choice.policy
    return (COMMON_SWEEP,) if policy.reserve == "common" else own_sweep(policy.settings)


def own_sweep(settings: type[PolicySettings]) -> tuple[str, ...]:
    """The sweeps of a policy that owns its reserve; none where it has no setting that is known to be its margin."""
    usual, *others = OWN_SWEEPS
    found: list[Mapping[str, str]] = [{key: values for key, values in usual.items() if key in settings.model_fields}]
    # Of a further one every value belongs together.
    found += [sweep for sweep in others if settings.model_fields.keys() >= sweep.keys()]
    return tuple(",".join(f"{key}={values}" for key, values in sweep.items()) for sweep in found if sweep)


def _family(option: str, text: str, usual: Sequence[str]) -> Family:
    head, _, given = text.partition(":")
    name, _, alias = head.partition("=")
    family = alias or name
    if name == ORACLE:
        return Family(option, family, (text,), {family: ""})
    sweeps = [given] if given else usual or [""]
    labels = list(dict.fromkeys(label for sweep in sweeps for label in _labels(f"{option} {text}", sweep)))
    settings = {f"{family} {label}".strip(): label for label in labels}
    texts = tuple(f"{name}={row}" + (f":{label}" if label else "") for row, label in settings.items())
    return Family(option, family, texts, settings)


def _labels(where: str, sweep: str) -> list[str]:
    """Every combination of the values, as `KEY=V,KEY=V`."""
    keys, values, count = [], [], 1
    for item in filter(None, sweep.split(",")):
        key, equals, swept = item.partition("=")
        if not equals:
            raise BadConfig(f"{where}: want NAME:key=value|value,key=value, not {item!r}", reason="invalid")
        keys.append(key.strip())
        values.append(swept.split("|"))
        count *= len(values[-1])
    if count > MAX_ROWS:
        raise BadConfig(f"{where}: {count} rows, at most {MAX_ROWS}: sweep fewer values", reason="invalid")
    combinations = product(*values)
    return [",".join(f"{key}={value}" for key, value in zip(keys, chosen, strict=True)) for chosen in combinations]
