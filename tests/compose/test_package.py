"""The Debian package on a machine that has nothing else: installed by dpkg, run, asked, and removed without a trace."""

import os
from pathlib import Path

import pytest
from compose_rig.engine import Engine

from deploy.artifacts import debian
from deploy.artifacts.checkout import this_checkout
from shared.build import VERSION

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

SCRIPT = """
set -e
files() { find /etc /usr /opt /srv /home /root /run /var -xdev | grep -v -e '^/var/lib/dpkg' -e '^/var/log' | sort; }
files >/tmp/before
dpkg --install /deb/sublet.deb
sublet --version
sublet up --substrate sim --dry-run
sublet up --substrate sim >/tmp/up 2>&1 &
up=$!
until grep 'Sublet is up' /tmp/up; do kill -0 $up; sleep 0.2; done
until sublet status >/tmp/status; do :; done
grep ready /tmp/status
kill -TERM $up
wait $up
dpkg --listfiles sublet | grep -c '/usr/share/man/man1/sublet.*gz'
dpkg --remove sublet
test -f /etc/default/sublet # settings stay until a purge, as Debian has it
dpkg --purge sublet
rm -r /var/lib/sublet # the history of evictions, which stays in any case
files | diff /tmp/before - || { echo "something is left"; exit 1; }
echo removed without a trace
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (made,) = debian.build(this_checkout(), tmp_path_factory.mktemp("deb"))
    return made.rename(made.with_name("sublet.deb"))


def test_it_is_installed_runs_and_goes(package: Path, engine: Engine) -> None:
    mounted = f"{package.parent}:/deb:ro"
    said = engine.docker(
        "run", "--rm", "--network", "none", "--volume", mounted, os.environ["BASE"], "sh", "-c", SCRIPT, timeout_s=600
    )
    assert f"sublet {VERSION} (revision " in said
    assert "would be started" in said
    assert "Sublet is up" in said
    assert said.splitlines()[-1] == "removed without a trace"
