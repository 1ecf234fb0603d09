"""One colour per class on every page, on light and on dark ground, distinguishable for colour-blind readers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour on light and on dark ground, as `#rrggbb`."""

    light: str
    dark: str


GROUND = Ink("#ffffff", "#12171f")
"""Behind all text and charts."""

SERIES = {
    "shared": Ink("#0067a5", "#4aa3f0"),
    "reclaimed": Ink("#c78500", "#f5c542"),
    "dedicated": Ink("#004d3b", "#0a9d77"),
    "system": Ink("#cf6fae", "#f0a6d8"),
    "lack": Ink("#9c1f06", "#f2602e"),
    "limit": Ink("#1c2430", "#e6eaf0"),
    "machine": Ink("#6a7280", "#98a2b3"),
}
"""What a line or an area stands for: a QoS class, something missing, a limit, or the machine as a whole. The hues are
those of Okabe and Ito, made darker or lighter until each has a contrast of 3 to 1 to its ground."""

TEXT = {
    "ink": Ink("#1c2430", "#e6eaf0"),
    "soft": Ink("#566071", "#a3adbb"),
    "good": Ink("#00614a", "#3ecf9f"),
    "bad": Ink("#9c1f06", "#ff8a5c"),
}
"""Text in these has a contrast of 4.5 to 1 to its ground."""

LINES = {"line": Ink("#dde2e9", "#2c3542"), "panel": Ink("#f6f8fa", "#1a212c"), "band": Ink("#e9edf3", "#262f3c")}
"""Rules, panels and marked spans: they part things and say nothing by themselves."""


def variables(dark: bool) -> str:
    """The colours as declarations of CSS."""
    inks = {"ground": GROUND, **SERIES, **TEXT, **LINES}
    return ";".join(f"--{name}:{ink.dark if dark else ink.light}" for name, ink in inks.items())
