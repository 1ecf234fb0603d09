"""The receiver's address: checked before anything is read, and displayed without secrets."""

from urllib.parse import SplitResult, urlsplit

from shared.errors import Refused

KUBERNETES = "kubernetes"
SCHEMES = ("http", "https")
MAX_ADDRESS_CHARS = 2048


def require_address(to: str) -> None:
    """Refuse what is neither an address over HTTP nor the word for Kubernetes.

    Raises:
        Refused: says what is wrong with it, without a login that may stand in it.
    """
    if to == KUBERNETES:
        return
    if len(to) > MAX_ADDRESS_CHARS:
        raise Refused(f"--to: {len(to)} characters: want {MAX_ADDRESS_CHARS} at most", reason="option")
    if not to.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise Refused(
            f"--to {to!r}: want an address that begins with http:// or https://, or {KUBERNETES}", reason="option"
        )
    try:
        parts = urlsplit(to)
        port = parts.port
    except ValueError:
        parts, port = SplitResult("", "", "", "", ""), 0
    plain = to.isprintable() and not any(character.isspace() or character in '<>"{}|\\^`' for character in to)
    if not plain or not parts.hostname or port == 0:
        raise Refused(
            "--to: no address of a receiver: want http://HOST or https://HOST, where needed with :PORT from 1 to 65535 "
            "and a path, and %20 for a space",
            reason="option",
        )


def shown_address(to: str) -> str:
    """Scheme, host and port: a path or a login may be a receiver's secret."""
    parts = urlsplit(to)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
