"""The rows of a comparison: the baseline, then the policies, then the peers, each under a name of its own."""

from collections.abc import Sequence

from services.advisor.registry import known_policies
from shared.core.text.did_you_mean import closest
from shared.errors import BadConfig
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender, PolicyContender, StaticContender, policy_of
from sublet.replay.oracle import ORACLE, OracleContender
from sublet.replay.peers import PEERS, peer_of
from sublet.replay.row_text import RowText

PEER_NAMES = (*PEERS, ORACLE)


def rows_of(policies: Sequence[str], peers: Sequence[str], rules: BatchRules) -> list[Contender]:
    """The rows that were asked for; every policy where none is named.

    Raises:
        BadConfig: there is no such policy, peer or key, a value is out of bounds, or two rows have one name.
    """
    of_policies = [policy_of(text) for text in policies or known_policies()]
    taken = {row.name for row in of_policies}
    chosen: list[Contender] = [StaticContender(), *of_policies]
    # Beside a policy's row of the same name the peer's says what it is.
    chosen += [_peer(text, f"{text} (peer)" if text in taken else "", rules) for text in peers]
    _check_names(chosen)
    return chosen


def _check_names(rows: Sequence[Contender]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            option = "--policy" if isinstance(row, PolicyContender) else "--peer"
            raise BadConfig(
                f"{option} {row.name}: stands twice; leave one out, or give it a name of its own: NAME=ALIAS",
                reason="invalid",
            )
        seen.add(row.name)


def _peer(text: str, called: str, rules: BatchRules) -> Contender:
    row = RowText.of("--peer", text)
    if row.name not in PEER_NAMES:
        meant = closest(row.name, PEER_NAMES) or min(PEER_NAMES)
        raise BadConfig(f"--peer {row.name}: known are {', '.join(sorted(PEER_NAMES))}; did you mean {meant}?")
    if row.name != ORACLE:
        return peer_of(row.name, called or row.alias, row.given)
    if row.given:
        raise BadConfig(f"--peer {text}: the oracle has no knobs; write --peer {ORACLE}", reason="invalid")
    return OracleContender(called or row.alias, rules.pod_cores)
