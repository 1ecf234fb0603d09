"""The live page in a real browser: everything it shows, by mouse, by keyboard, in the dark and on a phone."""

from pathlib import Path
from typing import Any

import pytest
from page_fleet import CPUS
from page_rig import NODES, LivePage, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
OUT = Path(__file__).parents[2] / "out/page"
ESCAPE, ENTER, RIGHT, DOWN = "\ue00c", "\ue007", "\ue014", "\ue015"


def text(window: Any, name: str) -> str:
    return str(window.find_element("id", name).text)


def press(window: Any, *keys: str) -> None:
    window.switch_to.active_element.send_keys(*keys)


def shown(window: Any) -> int:
    """How many nodes the map has."""
    return int(window.execute_script("return Number(document.getElementById('map').dataset.nodes)"))


def cells(window: Any) -> list[Any]:
    """The CPUs that are drawn."""
    return list(window.find_elements("css selector", "#cpus .cpu"))


def ground(window: Any) -> str:
    """The colour behind everything."""
    return str(window.execute_script("return getComputedStyle(document.body).backgroundColor"))


def picture(window: Any, name: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    window.save_screenshot(str(OUT / f"{name}.png"))


def test_every_node_has_its_cell_and_the_sums_are_theirs(window: Any) -> None:
    summary = text(window, "summary")
    assert f"{NODES} nodes" in summary
    assert f"of {NODES * 48:,} CPUs used" in summary
    assert shown(window) == NODES
    assert "revision 7" in text(window, "rollout")
    picture(window, "cluster")


def test_the_search_leaves_what_matches(window: Any) -> None:
    search = window.find_element("id", "search")
    search.send_keys("state:unready")
    unready = len([number for number in range(NODES) if number % 97 == 5])
    wait_for(lambda: shown(window) == unready, "the unready nodes")
    search.clear()
    search.send_keys("node-0001 state:ready")
    wait_for(lambda: shown(window) == 10, "ten nodes by name")
    press(window, ESCAPE)
    wait_for(lambda: shown(window) == NODES, "all nodes again")


def test_a_node_is_opened_and_closed_by_the_keyboard_alone_and_its_cpus_move(window: Any) -> None:
    window.find_element("id", "map").send_keys(RIGHT, RIGHT, DOWN, ENTER)
    name = text(window, "node-name")
    assert name.startswith("node-")
    wait_for(lambda: len(cells(window)) == CPUS, "the node's CPUs")
    assert len(window.find_elements("css selector", "#cpus .numa")) == 4
    assert window.find_elements("css selector", "#cpus .cpu.both"), "CPUs that two pools share"
    before = cells(window)[0].get_attribute("title")
    wait_for(lambda: cells(window)[0].get_attribute("title") != before, "a CPU that moves")
    picture(window, "node")
    press(window, ESCAPE)
    wait_for(lambda: not window.find_element("id", "node").is_displayed(), "the node to close")


def test_dark_and_light(window: Any) -> None:
    before = ground(window)
    press(window, "d")
    assert ground(window) != before
    picture(window, "dark")
    press(window, "d")
    assert ground(window) == before


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_cut_off_on_a_narrow_screen(window: Any, width: int) -> None:
    devices = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", devices)
    wait_for(lambda: window.execute_script("return innerWidth") == width, "the narrow screen")
    assert window.execute_script("return document.documentElement.scrollWidth") <= width
    picture(window, f"width-{width}")


def test_it_asks_nobody_else_and_breaks_no_rule_of_its_own(window: Any, live_page: LivePage) -> None:
    origin = live_page.url.partition("?")[0].rstrip("/")
    asked = window.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert asked
    assert all(one.startswith(origin) for one in asked)
    assert window.get_log("browser") == []
    assert "token" not in window.current_url


def test_a_page_without_news_says_so(window: Any, live_page: LivePage) -> None:
    """The last one: the page's process ends."""
    live_page.page.kill()
    wait_for(lambda: "no news from Sublet" in text(window, "banner"), "the word that what is seen is old")
