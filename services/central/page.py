"""`python -m services.central.page`: the live page of the cluster, or of the one host that `sublet up --page` runs on.

It hears what nodes say and writes nothing. It listens on loopback: in a cluster `kubectl port-forward` leads there, so
that the API server decides who sees it; on one host a login in the page's address does.
"""

from services.central.adapters.live_page.login import PageLogin
from services.central.adapters.live_page.server import LivePageServer
from services.central.live_page.app import LivePageApp
from services.central.live_page.intake import SERVICE
from services.central.settings import NAME, CentralSettings
from shared.adapters.process import main
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """The page by `central.page`."""
    settings = section(CentralSettings, context.raw, NAME)
    login = PageLogin.made(context.common.state_dir) if settings.page.login == "token" else None
    server = LivePageServer(settings.page.port, login)
    return LivePageApp(context.wire, server, settings.rules)


PLAN = Plan(SERVICE, build)

if __name__ == "__main__":
    main([PLAN])
