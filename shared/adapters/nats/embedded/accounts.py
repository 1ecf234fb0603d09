"""`AccountsFile` configures the embedded server's accounts: one for Sublet, one for readers, one for each team.

Every connection needs a login. Streams are only in Sublet's account, because the server sends an answer of the
JetStream API to any subject that the requester names, so a right to ask there would be a right to write there. A team
sees only its own durable, a reader the services' answers and the eviction events.

Which parts of the JetStream API must cross the border was found on the real server, 2.15. A team's account has no
JetStream, and the server answers `$JS.API.>` there itself ("not enabled for account"). The team's requests are
therefore mapped to other subjects, which are imported from Sublet's account. Acknowledgements and the inbox need no
mapping.
"""

import contextlib
import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.adapters.files.replaced import write_whole
from shared.adapters.nats.embedded.password import new_password
from shared.contracts.bus.rights import API, MAPPED, READERS_CALLS
from shared.contracts.bus.subjects import EVENTS_STREAM, ask_subject
from shared.errors import Unavailable, Unfit

ACCOUNT, READERS, TEAM = "SUBLET", "READERS", "TEAM_"
SERVICES_USER, READER_USER = "_sublet", "_reader"
"""Logins of this machine's services, which may do everything, and of readers; no team can have such a name."""
INBOX = "_INBOX.>"
ASK = ask_subject("*", "*")
READ_EVENTS = tuple(f"{API}.{call}" for call in READERS_CALLS)
HAS_STREAMS = f"{API}.INFO"
"""Answered in a reader's own account: no. A client then reads without a consumer."""
LIMITS = {"max_connections": 16, "max_subscriptions": 256, "max_payload": 64 << 10}
"""Limits of one team, since its connections cost memory of the server that all share; its messages are small."""


@dataclass(frozen=True, slots=True)
class Passwords:
    """Passwords of the two permanent logins, unhashed in the file, which only its owner may read."""

    services: str = field(repr=False)
    reader: str = field(repr=False)


class AccountsFile:
    """The part of the server's configuration with the logins; only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the file against other writers.

        Raises:
            Unavailable: its folder cannot be written.
        """
        try:
            lock = self.path.with_suffix(".lock").open("w")
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror}; try with sudo", reason="accounts") from error
        with lock:
            # A lock file next to the file, because the file itself is replaced as a whole: a lock on it would be on the
            # old inode.
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def logins(self) -> Mapping[str, str]:
        """Return the hashed password of each team; empty if there is no file yet.

        Raises:
            Unavailable: the file cannot be read; without it the teams' rights are unknown.
            Unfit: it belongs to another user.
        """
        users = self._users()
        return {user: word for account, (user, word) in users.items() if account.startswith(TEAM)}

    def passwords(self) -> Passwords:
        """Return the passwords in the file; new ones if it has none yet.

        Raises:
            Unavailable: the file cannot be read.
            Unfit: it belongs to another user.
        """
        users = self._users()
        _, services = users.get(ACCOUNT, ("", ""))
        _, reader = users.get(READERS, ("", ""))
        return Passwords(services or new_password(), reader or new_password())

    def _users(self) -> Mapping[str, tuple[str, str]]:
        """The user of each account and what the file holds as its password."""
        try:
            accounts = json.loads(self.path.read_text())["accounts"]
            users = {name: account["users"][0] for name, account in accounts.items()}
            return {name: (user["user"], user["password"]) for name, user in users.items()}
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            raise Unfit(f"{self.path}: only the user of the NATS server may read it; try with sudo") from error
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"{self.path}: {error!r}; mend it, or remove it and add each team again", reason="accounts"
            ) from error

    def write(self, logins: Mapping[str, str]) -> Passwords:
        """Replace the file, readable only by its owner; an unchanged one is not written, so that a full disk does no
        harm.

        The passwords of services and readers stay, or are created now; they are returned.

        Raises:
            Unavailable: it cannot be written.
        """
        # The services' password outlives the server: running services reconnect with the one that they were started
        # with.
        passwords = self.passwords()
        text = json.dumps(document(logins, passwords), indent=1)
        try:
            if self.path.exists() and self.path.read_text() == text:
                return passwords
            write_whole(self.path, text.encode(), mode=0o600)
            return passwords
        except OSError as error:
            raise Unavailable(
                f"cannot write {self.path}: {error.strerror}; try with sudo", reason="accounts"
            ) from error


def document(logins: Mapping[str, str], passwords: Passwords) -> dict[str, Any]:
    """The configuration for these teams and hashes of their passwords (JSON is a form of the server's language)."""
    ours = {
        "jetstream": "enabled",
        "users": [{"user": SERVICES_USER, "password": passwords.services}],
        "exports": [*reader_exports(), *exports(sorted(logins))],
    }
    teams = {f"{TEAM}{team}": team_account(team, logins[team]) for team in sorted(logins)}
    return {"accounts": {ACCOUNT: ours, READERS: reader_account(passwords.reader), **teams}}


def reader_account(password: str) -> dict[str, Any]:
    """Return the account of readers: it may query the services and fetch stored events, and nothing else."""
    mapped = {subject: subject.replace(API, MAPPED, 1) for subject in READ_EVENTS}
    rights = {"publish": [ASK, HAS_STREAMS, *mapped.values()], "subscribe": [INBOX, "_INBOX_cli.>"]}
    return {
        "limits": LIMITS,
        "users": [{"user": READER_USER, "password": password, "permissions": rights}],
        "mappings": mapped,
        "imports": [
            {"service": {"account": ACCOUNT, "subject": ASK}},
            *({"service": {"account": ACCOUNT, "subject": to_us}, "to": here} for to_us, here in mapped.items()),
        ],
    }


def reader_exports() -> list[dict[str, Any]]:
    """Return what Sublet's account lets readers request; a direct read of many events has many answers."""
    to = {"accounts": [READERS]}
    return [{"service": ASK, **to}, *({"service": call, "response_type": "stream", **to} for call in READ_EVENTS)]


def exports(teams: Iterable[str]) -> list[dict[str, Any]]:
    """Return what Sublet's account exports: each team's own durable, to that team."""
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
