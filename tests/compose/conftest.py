"""An engine of the tests' own; on it the compose project of this checkout, up once for all tests of a module."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError
from unittest.mock import patch

import pytest

sys.path.append(str(Path(__file__).parents[1] / "vm"))  # its rig knows how to fetch Debian packages

from compose_rig.engine import Engine, base_image, running
from compose_rig.parts import ENGINE, build_compose
from compose_rig.project import Project, environment


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """It runs, and programs that this process starts find it."""
    ENGINE.require_tools()
    with ENGINE.cache_held() as cache:
        build_compose(cache, print)
        with running(cache) as engine, patch.dict(os.environ, environment(engine, base_image(engine, cache, print))):
            yield engine


@pytest.fixture(scope="module")
def project(engine: Engine) -> Iterator[Project]:
    """Healthy, with volumes as new."""
    project = Project(engine)
    project.down()  # what a run that was killed has left
    try:
        project.build()
        yield project
    except CalledProcessError as error:
        raise AssertionError(f"{error}\n{project.last_words()}") from error
    finally:
        project.down()
