"""`browser` starts Debian's Chromium without a screen; nothing but the page is asked for over the network."""

from typing import Any

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb",
)  # fmt: skip
FRAMES_A_SECOND = """
const span_ms = arguments[0], done = arguments[1];
let count = 0, last = performance.now(), worst = 0;
const began = last;
function frame(now) {
  count++; worst = Math.max(worst, now - last); last = now;
  window.scrollBy(0, count % 200 < 100 ? 12 : -12);
  if (now - began < span_ms) requestAnimationFrame(frame);
  else done([1000 * count / (now - began), worst]);
}
requestAnimationFrame(frame);
"""
"""Scrolls for so many milliseconds: frames a second, and the longest time between two."""


def browser(width: int = 1440, height: int = 900) -> Any:
    """A window of this size."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--window-size={width},{height}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(60)
    return driver
