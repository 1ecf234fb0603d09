"""The wheel, built once, in an environment as small as it may be and in one with every extra."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clean_environment import Environment, build_wheel, make_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Environment, Environment]:
    """Without extras and with them, made side by side: an installation waits for the disk and the package index."""
    plain, full = (tmp_path_factory.mktemp(name) for name in ("plain", "full"))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(make_environment, plain, wheel, "run")
        second = pool.submit(make_environment, full, wheel, "run", "kube", "trace", "authors")
        return first.result(), second.result()


@pytest.fixture(scope="session")
def plain(environments: tuple[Environment, Environment]) -> Environment:
    """Without extras."""
    return environments[0]


@pytest.fixture(scope="session")
def full(environments: tuple[Environment, Environment]) -> Environment:
    """With the extras."""
    return environments[1]
