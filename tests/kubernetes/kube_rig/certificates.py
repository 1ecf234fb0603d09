"""Keys and certificates of a cluster, made anew for each run with openssl, and kubeconfig files for who uses them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.packages import run

_DAYS = "7"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """The authority of the cluster: it signs for servers and for clients."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.identity = Identity(folder / "ca.crt", folder / "ca.key")
        run(["openssl", "req", "-x509", *_NEW_KEY, "-days", _DAYS, "-subj", "/CN=sublet-test",
             "-addext", "keyUsage=critical,keyCertSign,cRLSign",
             "-keyout", self.identity.key, "-out", self.identity.certificate])  # fmt: skip
        self.service_account_key = folder / "service-account.key"
        run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
             "-out", self.service_account_key])  # fmt: skip

    @property
    def certificate(self) -> Path:
        """Of the authority itself."""
        return self.identity.certificate

    def sign(self, file: str, user: str, groups: Sequence[str] = (), addresses: Sequence[str] = ()) -> Identity:
        """A certificate for a client (user and groups, as Kubernetes reads them) or a server (`DNS:…`, `IP:…`)."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        names = ("-addext", f"subjectAltName={','.join(addresses)}") if addresses else ()
        signed = Identity(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        run(["openssl", "req", "-x509", *_NEW_KEY, "-days", _DAYS, "-subj", subject, *names,
             "-CA", self.identity.certificate, "-CAkey", self.identity.key,
             "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth,clientAuth",
             "-keyout", signed.key, "-out", signed.certificate])  # fmt: skip
        return signed

    def kubeconfig(self, path: Path, server: str, identity: Identity) -> Path:
        """Write the file with which a client reaches the API server."""
        user = {"client-certificate": str(identity.certificate), "client-key": str(identity.key)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": server, "certificate-authority": str(self.certificate)}}
            ],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(content, indent=1))
        return path
