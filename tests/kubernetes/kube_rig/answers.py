"""Whether a program of the cluster answers, asked from outside."""

import http.client
import ssl

from kube_rig.isolation import NODE_IP

_LIMIT_S = 2.0


def answers(port: int, path: str, *, secure: bool = True, host: str = NODE_IP) -> bool:
    """Whether it says 200 there. Who it is does not matter: nobody else can have the address."""
    connection: http.client.HTTPConnection
    if secure:
        trusting = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, port, timeout=_LIMIT_S, context=trusting)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_LIMIT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
