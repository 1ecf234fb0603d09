"""For the hub's configuration, the key by which it knows central's answers: python -m services.central.issuer FILE

The password of central comes in CENTRAL_PASSWORD. Only the public key is written.
"""

import os
import sys
from pathlib import Path

from services.central.bus_logins import login_seed
from shared.adapters.ed25519 import SigningKey
from shared.core.nats_jwt import account_key


def main(file: Path, password: str) -> None:
    """Write a line of the server's language."""
    file.write_text(f'issuer: "{account_key(SigningKey(login_seed(password)).public)}"\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]), os.environ["CENTRAL_PASSWORD"])
