"""The writer of the hub's configuration that comes from Secrets: python -m services.central.issuer FOLDER

`issuer.conf` and `tags.conf` hold the key by which the hub knows central's answers (the public one; ISSUER is the
secret), `routes.conf` the way to the other servers: hosts in ROUTES, with ROUTES_PASSWORD and, while it is being
replaced, ROUTES_PREVIOUS_PASSWORD, for a server takes the one that it started with.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from services.central.core.logins.bus_login import ISSUER_TAG
from services.central.core.logins.issuer_key import login_seed
from shared.adapters.ed25519 import SigningKey
from shared.core.bus.nats_jwt import account_key


def main(folder: Path, env: Mapping[str, str]) -> None:
    """Write the files, readable only by the hub."""
    issuer = account_key(SigningKey(login_seed(env["ISSUER"])).public)
    known = dict.fromkeys(filter(None, (env.get("ROUTES_PASSWORD"), env.get("ROUTES_PREVIOUS_PASSWORD"))))
    hosts = [host for host in env.get("ROUTES", "").split(",") if host]
    routes = [f"nats-route://routes:{password}@{host}" for host in hosts for password in known]
    lines: dict[str, tuple[str, object]] = {
        "issuer": ("issuer", issuer),
        "tags": ("server_tags", [ISSUER_TAG + issuer]),
        "routes": ("routes", routes),
    }
    for name, (key, value) in lines.items():
        file = folder / f"{name}.conf"
        # Before the text: a file made by writing would be readable by others for a moment.
        file.touch(mode=0o600)
        file.write_text(f"{key}: {json.dumps(value)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), os.environ)
