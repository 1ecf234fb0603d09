"""Accounts of the embedded server: one for Sublet, one for each team, which sees its own durable and nothing else.

What of the JetStream API must cross the border was found on the real server, 2.15. A team's account has no JetStream,
and the server answers `$JS.API.>` there itself ("not enabled for account"): so the team's questions are mapped to
subjects of another name, which are imported from Sublet's account. Acknowledgements and the inbox need no such thing.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.contracts.subjects import EVENTS_STREAM
from shared.errors import Unavailable, Unfit

ACCOUNT = "SUBLET"
TEAM = "TEAM_"
NO_LOGIN = "_sublet"
"""The user that everybody is who gives no name: the services of this machine, on its loopback address."""
API, MAPPED = "$JS.API", "SUBLET.API"
INBOX = "_INBOX.>"
LIMITS = {"max_connections": 16, "max_subscriptions": 256, "max_payload": 64 << 10}
"""Of one team: what it opens costs memory of the server that all share. Requests and acknowledgements are small."""


class AccountsFile:
    """The part of the server's configuration that says who may come in; only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else changes it meanwhile.

        Raises:
            Unavailable: its folder cannot be written.
        """
        try:
            lock = self.path.with_suffix(".lock").open("w")
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror}; try with sudo", reason="accounts") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def logins(self) -> Mapping[str, str]:
        """The hashed password of each team; none where there is no file yet.

        Raises:
            Unavailable: the file cannot be read; without it nobody's rights are known.
            Unfit: it is another user's.
        """
        try:
            accounts = json.loads(self.path.read_text())["accounts"]
            teams = {name: account["users"][0] for name, account in accounts.items() if name.startswith(TEAM)}
            return {user["user"]: user["password"] for user in teams.values()}
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            raise Unfit(f"{self.path}: only the user of the NATS server may read it; try with sudo") from error
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"{self.path}: {error!r}; mend it, or remove it and add each team again", reason="accounts"
            ) from error

    def write(self, logins: Mapping[str, str]) -> None:
        """Replace it, whole, readable by its owner alone; one that says the same stays, as on a disk that is full.

        Raises:
            Unavailable: it cannot be written.
        """
        text, fresh = json.dumps(document(logins), indent=1), self.path.with_suffix(".new")
        try:
            if self.path.exists() and self.path.read_text() == text:
                return
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
            fresh.replace(self.path)
        except OSError as error:
            raise Unavailable(
                f"cannot write {self.path}: {error.strerror}; try with sudo", reason="accounts"
            ) from error


def document(logins: Mapping[str, str]) -> dict[str, Any]:
    """The configuration for these teams and hashes of their passwords (JSON is a form of the server's language)."""
    ours = {"jetstream": "enabled", "users": [{"user": NO_LOGIN, "password": ""}], "exports": exports(sorted(logins))}
    teams = {f"{TEAM}{team}": team_account(team, logins[team]) for team in sorted(logins)}
    return {"accounts": {ACCOUNT: ours, **teams}, "no_auth_user": NO_LOGIN}


def exports(teams: Iterable[str]) -> list[dict[str, Any]]:
    """What Sublet's account lets out: each team's own durable, to that team."""
    found: list[dict[str, Any]] = []
    for team in teams:
        to = {"accounts": [f"{TEAM}{team}"]}
        found += [
            {"service": _info(team), **to},
            {"service": _next(team), "response_type": "stream", **to},  # a request for many is answered many times
            {"service": _ack(team), **to},
        ]
    return found


def team_account(team: str, hashed: str) -> dict[str, Any]:
    """A team's account: it asks about its durable, pulls from it and acknowledges; that is all it can name."""
    mappings = {subject: subject.replace(API, MAPPED, 1) for subject in (_info(team), _next(team))}
    rights = {"publish": [*mappings.values(), _ack(team)], "subscribe": [INBOX]}
    return {
        "limits": LIMITS,
        "users": [{"user": team, "password": hashed, "permissions": rights}],
        "mappings": mappings,
        "imports": [
            *({"service": {"account": ACCOUNT, "subject": to_us}, "to": here} for to_us, here in mappings.items()),
            {"service": {"account": ACCOUNT, "subject": _ack(team)}},
        ],
    }


def snippet(team: str, hashed: str) -> str:
    """For the configuration of a server that is not ours: what its operator adds to the two accounts."""
    lines = [f"# in the account that holds {EVENTS_STREAM} (here {ACCOUNT}), under exports:"]
    lines += [f"  {json.dumps(export)}" for export in exports([team])]
    lines += ["# under accounts:", f"  {TEAM}{team}: {json.dumps(team_account(team, hashed), indent=2)}"]
    return "\n".join([*lines, "# then twice, some 2.15 servers take a new account's imports up only then:",
                      "#   nats-server --signal reload"])  # fmt: skip


def _info(team: str) -> str:
    return f"{API}.CONSUMER.INFO.{EVENTS_STREAM}.{team}"


def _next(team: str) -> str:
    return f"{API}.CONSUMER.MSG.NEXT.{EVENTS_STREAM}.{team}"


def _ack(team: str) -> str:
    return f"$JS.ACK.{EVENTS_STREAM}.{team}.>"
