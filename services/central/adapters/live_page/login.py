"""`PageLogin` is the secret in the address of the live page, made anew at each start."""

import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from shared.adapters.files.replaced import replace_file

FILE = "page.json"
_SECRET_BYTES = 24


@dataclass(frozen=True, slots=True)
class PageLogin:
    """Who knows the token sees the page. The file with the whole address is for the owner of the state folder alone."""

    state_dir: Path
    token: str

    @classmethod
    def made(cls, state_dir: Path) -> Self:
        """A new login."""
        return cls(state_dir, secrets.token_urlsafe(_SECRET_BYTES))

    def lets_in(self, shown: str) -> bool:
        """Whether what a browser shows is the token."""
        return hmac.compare_digest(shown.encode(errors="replace"), self.token.encode())

    def publish(self, url: str) -> None:
        """Write the address with the login to `page.json`.

        Raises:
            Unavailable: the file cannot be written.
        """
        address = json.dumps({"url": f"{url}?token={self.token}"})
        replace_file(self.state_dir / FILE, address.encode(), what="address of the page", mode=0o600)
