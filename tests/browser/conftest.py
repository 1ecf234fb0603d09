"""A page that hears a fleet, and a window of a real browser at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from page_rig import NODES, LivePage, wait_for
from page_window import browser


@pytest.fixture(scope="module")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePage]:
    """A page that hears a fleet."""
    page = LivePage(tmp_path_factory.mktemp("page"), NODES)
    yield page
    page.end()


@pytest.fixture
def window(live_page: LivePage) -> Iterator[Any]:
    """A browser at the page, with all nodes."""
    driver = browser()
    driver.get(live_page.url)
    wait_for(lambda: driver.find_element("id", "summary").text.startswith(f"{NODES} nodes"), "all nodes")
    yield driver
    driver.quit()
