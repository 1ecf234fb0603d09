"""A team's login: created, kept or changed at this machine's server, or printed for a server that is not ours."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from shared.adapters.nats.embedded.accounts import snippet
from shared.adapters.nats.embedded.password import new_password, password_hash
from shared.adapters.nats.embedded.reload import LocalServer, local_server
from shared.core.bus.nats_url import read_nats_url
from shared.errors import Refused, Unfit

LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Login:
    """What a team logs in with. `password` is None where it is kept as it is, or stands in a file."""

    user: str
    password: str | None = None
    password_file: Path | None = None
    for_operator: str | None = None
    """What the operator of a server that is not ours adds to its configuration."""

    def address(self, nats_url: str) -> str:
        """The server's address with the login; a password that is not known here is a word in capitals."""
        where = read_nats_url(nats_url)
        word = self.password or (f"$(cat {self.password_file})" if self.password_file else "PASSWORD")
        return f"nats://{self.user}:{word}@{where.host}:{where.port}"


def our_server(state_dir: Path, nats_url: str) -> LocalServer | None:
    """The server behind an address, if it is one that `sublet up` started on this machine."""
    server, where = local_server(state_dir / "nats"), read_nats_url(nats_url)
    if server is None or where.host not in LOOPBACK or where.port != read_nats_url(server.url).port:
        return None
    return server


def known_logins(server: LocalServer | None) -> Collection[str] | None:
    """The teams that have a login; None where this user may not know, or the server is not ours."""
    try:
        return server.accounts.logins() if server is not None else None
    except Unfit:
        return None


def give(team: str, server: LocalServer | None, password_file: Path | None, *, anew: bool) -> Login:
    """A login for the team. One that it has is kept, unless `anew`.

    Raises:
        Refused: the password file cannot be written.
        Unavailable: the server does not take it.
        Unfit: another user's server.
    """
    if not anew and (server is None or team in server.accounts.logins()):
        return Login(team)
    password = new_password()
    hashed = password_hash(password)
    if password_file is not None:
        _write(password_file, password)
    if server is not None:
        server.set_login(team, hashed)
    for_operator = None if server is not None else snippet(team, hashed)
    return Login(team, None if password_file else password, password_file, for_operator)


def require_writable(path: Path) -> None:
    """Find out that a password file could not be written, before anything is made that would stay behind.

    Raises:
        Refused: it cannot be written.
    """
    before = path.exists()
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        if not before:
            path.unlink()
    except OSError as error:
        raise Refused(f"--password-file {path}: {error.strerror}", reason="option") from error


def _write(path: Path, password: str) -> None:
    """For its owner alone, also where the file is there already."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(f"{password}\n")
    except OSError as error:
        raise Refused(f"--password-file {path}: {error.strerror}", reason="option") from error
