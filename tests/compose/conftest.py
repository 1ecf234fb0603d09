"""The compose project on an engine of the tests' own: built from this checkout, up once for all tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError
from unittest.mock import patch

import pytest

sys.path.append(str(Path(__file__).parents[1] / "vm"))  # its rig knows how to fetch Debian packages

from compose_rig.engine import base_image, running
from compose_rig.parts import ENGINE, build_compose
from compose_rig.project import Project, environment


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """Healthy, with volumes as new."""
    ENGINE.require_tools()
    with ENGINE.cache_held() as cache:
        build_compose(cache, print)
        with running(cache) as engine, patch.dict(os.environ, environment(engine, base_image(engine, cache, print))):
            project = Project(engine)
            project.down()  # what a run that was killed has left
            try:
                project.build()
                yield project
            except CalledProcessError as error:
                raise AssertionError(f"{error}\n{project.last_words()}") from error
            finally:
                project.down()
