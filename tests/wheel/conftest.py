"""The wheel, built once, in an environment as small as it may be and in one with every extra."""

from pathlib import Path

import pytest
from clean_environment import Environment, build_wheel, make_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Without extras."""
    return make_environment(tmp_path_factory.mktemp("plain"), wheel, "run")


@pytest.fixture(scope="session")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the extras."""
    return make_environment(tmp_path_factory.mktemp("full"), wheel, "run", "kube", "trace", "authors")
