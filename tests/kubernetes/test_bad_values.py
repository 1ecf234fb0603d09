"""What only the services can check is refused before anything is installed, by a hook with their own code."""

from collections.abc import Iterator

import pytest
import yaml
from kube_rig.cluster import Cluster, CommandError
from kube_rig.installation import CHART, LABELS, NAMESPACE, RELEASE, VALUES
from kube_rig.product import Product

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def empty(cluster: Cluster, product: str) -> Iterator[Product]:
    """The namespace alone."""
    assert product
    cluster.wait_gone(f"namespace/{NAMESPACE}")
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, *LABELS)
    yield Product(cluster)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"settings": {"advisor": {"policy": "nope"}}}, "advisor.policy = 'nope': no such policy"),
        ({"config": {"evictor": {"plugins": {"restless": {"enabled": True}}}}}, "restless"),
    ],
    ids=["a policy that nobody has", "a plugin that nobody has"],
)
def test_a_bad_setting_installs_nothing_and_says_why(empty: Product, values: dict[str, object], words: str) -> None:
    given = yaml.safe_dump({**VALUES, **values})
    with pytest.raises(CommandError, match="sublet-check"):
        empty.cluster.helm("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-", given=given)
    assert words in empty.in_system("logs", "job/sublet-check")
    assert not empty.in_system("get", "daemonsets,deployments,statefulsets", "--output", "name").split()
    empty.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--no-hooks")
