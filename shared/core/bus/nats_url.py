"""Parses, builds and displays addresses of NATS servers: `nats://user:password@host:port`, or several.

`tls://…?ca_file=/path` is encrypted, with a certificate of that authority or of one that this machine trusts.

The text comes from outside, and a password may contain anything. In an address it is percent-encoded; an unencoded one
is accepted if it is unambiguous. Errors never contain the address, because it may be a password.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from shared.errors import BadConfig

MAX_URL_CHARACTERS = 4096
DEFAULT_PORT = 4222
HIDDEN = "…"
SCHEMES = ("nats", "tls", "ws", "wss")
WANTED = (
    "want nats://host:port or nats://user:password@host:port, several with commas, each with the same user; "
    "in user and password write %40 for @, %2C for a comma, %3A for a colon, %25 for %"
)
_UNRESOLVED = re.compile(r":\$\([A-Z_]+\)$")
"""Kubelet leaves the name of a variable that its Secret does not have: a password that is not there."""
_PLACE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?/?"
    r"(?:\?ca_file=(?P<ca_file>[A-Za-z0-9._/+-]{1,256}))?"
)


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """Servers as `scheme://host:port`, and the login for all of them. A token is a user without a password.

    `previous` are passwords to try as well: of the same user, while one is being replaced.
    """

    servers: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    previous: tuple[str, ...] = field(default=(), repr=False)
    ca_file: str = ""

    @property
    def passwords(self) -> tuple[str, ...]:
        """All of them, the first one first."""
        return () if self.password is None else (self.password, *self.previous)

    @property
    def encrypted(self) -> bool:
        """Whether TLS is wanted."""
        return all(server.startswith("tls://") for server in self.servers)

    @property
    def over_websockets(self) -> bool:
        """Whether a server is reached over websockets."""
        return any(server.startswith(("ws://", "wss://")) for server in self.servers)

    @property
    def host(self) -> str:
        """Of the first server."""
        return self.servers[0].partition("://")[2].rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Of the first server."""
        return int(self.servers[0].rpartition(":")[2])


def read_nats_url(text: str) -> NatsAddress:
    """Parse the servers and the login.

    Raises:
        BadConfig: it is no address, or its servers have different logins; the text is not in the message.
    """
    if len(text) > MAX_URL_CHARACTERS:
        raise BadConfig(f"nats_url: at most {MAX_URL_CHARACTERS} characters are read; {WANTED}", reason="invalid")
    # A password that the Secret does not have, such as a previous one when none is being replaced: its part is left
    # out.
    known = [part for part in text.split(",") if not _UNRESOLVED.search(part.rpartition("@")[0])]
    parts = [_server(part.strip(" ")) for part in known or [""]]
    logins = list(dict.fromkeys(login for _, login, _ in parts))
    # The same server again with another password of the same user: it is being replaced.
    each = {tuple(login for place, login, _ in parts if place == server) for server, _, _ in parts}
    if len({(login or "").partition(":")[0] for login in logins}) > 1 or len({frozenset(one) for one in each}) > 1:
        raise BadConfig(f"nats_url: its servers have different logins; {WANTED}", reason="invalid")
    if len(logins) > 1 and any(":" not in (login or "") for login in logins):
        raise BadConfig(f"nats_url: with and without a password; {WANTED}", reason="invalid")
    ca_files = {ca_file for _, _, ca_file in parts}
    if ca_files != {""} and (len(ca_files) > 1 or any(not server.startswith("tls://") for server, _, _ in parts)):
        raise BadConfig(f"nats_url: want one ca_file, for tls:// alone, or none; {WANTED}", reason="invalid")
    (ca_file,) = ca_files
    servers = tuple(dict.fromkeys(server for server, _, _ in parts))
    if logins[0] is None:
        return NatsAddress(servers, ca_file=ca_file)
    user, colon, _ = logins[0].partition(":")
    password, *previous = (unquote((login or "").partition(":")[2]) for login in logins)
    return NatsAddress(servers, unquote(user), password if colon else None, tuple(previous), ca_file)


def _server(part: str) -> tuple[str, str | None, str]:
    """Split one server into its address, its login and its authority."""
    # From the left: an unencoded password may hold "://" as well.
    scheme, found, rest = part.partition("://")
    if not found:
        scheme, rest = "nats", part
    # From the right: an unencoded password may hold an "@", a host cannot.
    login, at, place = rest.rpartition("@")
    matched = _PLACE.fullmatch(place)
    port = int((matched and matched["port"]) or DEFAULT_PORT)
    if matched is None or scheme not in SCHEMES or not 0 < port < 1 << 16:
        raise BadConfig(f"nats_url {without_secrets(part)!r}: no address of a NATS server; {WANTED}", reason="invalid")
    return f"{scheme}://{matched['host']}:{port}", login if at else None, matched["ca_file"] or ""


def with_login(server: str, user: str, password: str) -> str:
    """The address of a server, `nats://host:port`, with a login; any characters may be in it."""
    scheme, _, place = server.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{place}"


def without_secrets(text: str) -> str:
    """Return what of an address may be displayed: the hosts after its last login. Everything before may be a
    password."""
    places = [part.strip(" ").rpartition("://")[2] for part in text[-MAX_URL_CHARACTERS:].rpartition("@")[2].split(",")]
    return ",".join(place.partition("?")[0] if _PLACE.fullmatch(place) else HIDDEN for place in places)
